"""`fractal convert`: Kubernetes manifests as a declaration, each object as a component of its own kind."""

from __future__ import annotations

from typing import Annotated

import typer

from fractal_cloud.cli.errors import CommandError, Exit


def convert(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="Files or folders of manifests; - for standard input (helm template …)."),
    ],
    live_system: Annotated[str, typer.Option("--id", metavar="LS", help="Id of the LiveSystem.")] = "converted",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="The namespace of what names none, as for kubectl apply.")
    ] = "",
    cluster: Annotated[
        str, typer.Option("--cluster", help="The cluster it lies in: a context, or the id of a declared cluster.")
    ] = "",
) -> None:
    """Print Kubernetes manifests as a declaration; comments stay, and values of Secrets become references.

    Nothing is deployed, and no cluster is asked.
    """
    from fractal_cloud.cli.conversion.objects import convert as converted
    from fractal_cloud.cli.conversion.reading import read
    from fractal_cloud.cli.conversion.writing import to_yaml
    from fractal_cloud.cli.output import warn
    from fractal_cloud.model.identity import ID_RULE, is_id
    from fractal_cloud.model.wording import counted

    if not is_id(live_system):
        raise CommandError(f"{live_system!r} is no id", advice=f"An id is {ID_RULE}.", code=Exit.USAGE)
    made = converted(read(sources), namespace, cluster)
    if not made.components:
        raise CommandError(
            "there is nothing to convert",
            details=made.notes,
            advice="Give manifests with apiVersion, kind and metadata.name.",
        )
    text = to_yaml(made, live_system)
    for note in made.notes:
        warn(note)
    if made.secrets:
        warn(
            f"{counted(len(made.secrets), 'secret')} to bind where the agent runs, because no value is written here: "
            + ", ".join(made.secrets)
        )
    typer.echo(text, nl=False)

"""The program fractal: it parses, calls and prints; whatever could be reused without a terminal belongs elsewhere.

Each command imports what it needs when it runs, so that `fractal --help` is there at once.
"""


def main() -> None:
    """Run the program with the arguments of this process."""
    from fractal_cloud.cli.app import run

    run()

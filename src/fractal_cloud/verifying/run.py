"""One run: the types chosen, one after the other, each created, tried and deleted; then the account is as before."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fractal_cloud.offers.registry import Registry
from fractal_cloud.testing.product import Product
from fractal_cloud.verifying import cleaning
from fractal_cloud.verifying.account import Account
from fractal_cloud.verifying.checks import Trial
from fractal_cloud.verifying.example import Place, VerificationExample
from fractal_cloud.verifying.report import Report

CYCLE_SECONDS = 5.0
VISIBILITY_SECONDS = 10.0


@dataclass(slots=True)
class Run:
    """A run over some examples; ``progress`` gets a line whenever something begins."""

    provider: str
    registry: Registry
    account: Account
    examples: Sequence[VerificationExample]
    place: Place
    progress: Callable[[str], None] = field(default=lambda _: None)

    def run(self) -> Report:
        """Try everything, and delete it again, also where something fails or somebody interrupts it."""
        report = Report(
            self.provider,
            self.account.realm,
            self.place.words,
            self.place.run,
            datetime.now(UTC).isoformat(timespec="seconds"),
        )
        try:
            with tempfile.TemporaryDirectory(prefix="fractal-verify-") as folder:
                self._try_all(Path(folder), report)
        except KeyboardInterrupt:
            report.interrupted = True
            self.progress("interrupted: deleting what was created; interrupt again to leave it")
        except Exception as error:  # noqa: BLE001  # what was created is deleted all the same, and what was found is shown
            report.error = f"{type(error).__name__}: {error}"
        finally:
            try:
                report.left += self._clean()
            except KeyboardInterrupt:
                report.interrupted = True
                report.left.append(f"interrupted while deleting: look for names that begin with {self.place.run}")
        return report

    def _try_all(self, folder: Path, report: Report) -> None:
        with Product(
            folder,
            (self.provider,),
            forget=lambda: None,
            registry=self.registry,
            cycle_seconds=CYCLE_SECONDS,
            visibility_seconds=VISIBILITY_SECONDS,
        ) as product:
            for example in self.examples:
                self.progress(f"{example.short_type}: trying it")
                trial = Trial(example, self.place, product, self.account, self.registry, report.findings)
                trial.run()
                trial.end()

    def _clean(self) -> list[str]:
        offers = cleaning.offers_of(self.registry, self.examples, self.account)
        return cleaning.delete(self.account, offers, lambda: cleaning.of_run(self.account, offers, self.place))

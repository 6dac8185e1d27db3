"""Changes that once went unnoticed by the tests that were meant for them, and the tests that must notice them now.

Each is a text of a source file and what takes its place. A text that is no longer there, or is there twice, fails
`make mutants`: whoever changes the line writes the change anew, or says with whoever reviews it why it is void.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RULES = "src/fractal_cloud/rules"
AGENT = "src/fractal_cloud/agent"
AUTH = "src/fractal_cloud/control/auth"
ACCESS = "tests/api/test_access.py::test_each_kind_of_token_reaches_its_own_routes_and_no_other"


@dataclass(frozen=True)
class Named:
    """One change, and the tests of which at least one must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


NAMED: Final = (
    Named(
        "a reader may DELETE",
        f"{AUTH}/principal.py",
        'method in ("GET", "HEAD")',
        'method in ("GET", "HEAD", "DELETE")',
        (ACCESS,),
    ),
    Named(
        "an operator may revoke tokens",
        f"{AUTH}/principal.py",
        'path == "/tokens" or path.startswith("/tokens/")',
        'path == "/tokens"',
        (ACCESS,),
    ),
    Named(
        "the heartbeat's deadline is counted from the answer",
        f"{AGENT}/main.py",
        "        self._leases.renew(asked)\n\n    def _may_write",
        "        self._leases.renew(moment())\n\n    def _may_write",
        ("tests/agent/test_deadline.py::test_the_lease_counts_from_before_the_heartbeat_was_sent",),
    ),
    Named(
        "stale memory is kept after a scope was another's",
        f"{AGENT}/leases.py",
        "return leased.running is not None or lease.work is None",
        "return leased.running is not None",
        ("tests/agent/test_deadline.py::test_what_is_known_of_a_scope_that_was_anothers_in_between_is_not_used_again",),
    ),
    Named(
        "the guard accepts another verb than decided",
        f"{AGENT}/writing.py",
        "allowed = again.step is not None and again.step.verb is planned.step.verb",
        "allowed = again.step is not None",
        ("tests/direct/test_guard.py::test_no_other_verb_than_the_one_decided_goes_out",),
    ),
    Named(
        "pick ignores managed-by",
        f"{RULES}/situate.py",
        "if sighting.protocol.is_managed and sighting.protocol.owner is not None",
        "if sighting.protocol.owner is not None",
        ("tests/direct/test_situate.py::test_which_of_two_is_meant",),
    ),
    Named(
        "the notice after an absence is forgotten, because the resource is back",
        f"{RULES}/situate.py",
        "was_absent=memory.absent_since is not None or memory.noticed_since is not None",
        "was_absent=memory.absent_since is not None",
        ("tests/direct/test_situate.py::test_notice_lasts_one_whole_settled_cycle",),
    ),
    Named(
        "the notice after an absence is forgotten, because it is managed",
        f"{RULES}/decide.py",
        "return not s.noticed and (s.stance in (Stance.NONE, Stance.IMPORTED) or came_back)",
        "return not s.noticed and s.stance in (Stance.NONE, Stance.IMPORTED)",
        ("tests/direct/test_decide.py::test_a_person_gets_to_see_first_what_arrives_or_comes_back",),
    ),
    Named(
        "S6a is not dropped on deletion",
        f"{RULES}/decide.py",
        '    if decision.rule == "S6a":\n        return "O3", Fate.DROP\n',
        "",
        ("tests/direct/test_decide.py::test_a_deletion_ends_exactly_as_the_protocol_says",),
    ),
    Named(
        "a busy resource never delays a deletion",
        f"{RULES}/judge.py",
        "return sighting.condition is not Condition.BROKEN and not sighting.accepts_changes",
        "return False",
        ("tests/direct/test_judge.py::test_a_deletion_waits_while_the_cloud_is_at_work",),
    ),
    Named(
        "a link's journal reason",
        f"{RULES}/judge.py",
        'reason = "link"',
        'reason = "drift"',
        ("tests/direct/test_judge.py::test_what_only_links_set_is_written_for_a_link_and_nothing_else_is",),
    ),
    Named(
        "one's own earlier creation is taken for a rival",
        f"{AGENT}/outcomes.py",
        "if outcome.had_no_effect and not self._may_be_its_own_rival(tracked, error):",
        "if outcome.had_no_effect:",
        ("tests/direct/test_cycle.py::test_a_creation_whose_name_its_own_lost_try_took_keeps_its_intent",),
    ),
    Named(
        "what is left is not held back",
        f"{AGENT}/conclusions.py",
        "family += [other for other in self._evaluator.dependencies_here(tracked) if other.deleting]",
        "family += []",
        (
            (
                "tests/direct/test_cycle.py::"
                "test_what_is_left_stays_until_what_it_depends_on_is_done_with_in_the_same_report"
            ),
        ),
    ),
    Named(
        "open writes are not awaited",
        f"{AGENT}/waves.py",
        "            wait(futures)  # whatever failed here",
        "            # whatever failed here",
        ("tests/direct/test_cycle.py::test_a_cycle_that_ends_early_waits_for_the_writes_that_are_under_way",),
    ),
    Named(
        "the length of the notice",
        f"{RULES}/situate.py",
        "now - memory.noticed_since >= cycle",
        "now - memory.noticed_since >= cycle / 2",
        ("tests/direct/test_situate.py::test_notice_lasts_one_whole_settled_cycle",),
    ),
    Named(
        "a lost creation is not awaited before its deletion ends",
        f"{RULES}/decide.py",
        '    if s.intent_open and not window_over:\n        return "S17", Fate.WAIT\n',
        "",
        (
            "tests/direct/test_decide.py::test_a_deletion_ends_exactly_as_the_protocol_says",
            "tests/direct/test_judge.py::test_gone_is_proven_and_never_concluded",
        ),
    ),
    Named(
        "what is recognised by its name is not awaited before its deletion ends",
        f"{AGENT}/evaluator.py",
        "if recognised and intent.resource_id is None and not tracked.deleting:",
        "if recognised and intent.resource_id is None:",
        ("tests/direct/test_cycle.py::test_a_lost_creation_is_awaited_before_its_deletion_ends",),
    ),
    Named(
        "the window is over after one read",
        f"{AGENT}/scope.py",
        "self.count >= 2",
        "self.count >= 1",
        ("tests/direct/test_cycle.py::test_the_window_is_two_reads_and_two_cycles_at_least",),
    ),
)

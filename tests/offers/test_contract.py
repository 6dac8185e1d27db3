"""Every offer of the registry, held to the one contract of ``fractal_cloud.testing``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fractal_cloud.offers.registry import installed
from fractal_cloud.testing import OfferContract
from fractal_sandbox import Sandbox
from tests.offers.suites import Case, Suite, kinds, suites


def _every(chosen: Callable[[Case], bool], is_quick: Callable[[Suite], bool] = lambda _: False) -> pytest.MarkDecorator:
    """One test for each type; all tests of one type share a world, so they stay with one worker.

    The quick run makes all demands of one or two types of each provider: of another one where a demand concerns none
    of these. ``is_quick``: where it makes this demand of every type.
    """
    params = []
    for suite in suites().values():
        names = [name for name, kind in suite.kinds().items() if chosen(suite.cases[kind])]
        quick = [name for name in names if is_quick(suite) or suite.is_quick(name)] or names[:1]
        for name in names:
            marks = [pytest.mark.xdist_group(f"contract {name}"), *suite.marks()]
            if name not in quick:
                marks.append(pytest.mark.soak)
            params.append(pytest.param(name, id=name, marks=marks))
    return pytest.mark.parametrize("contract", params, indirect=True, scope="module")


def _on_the_first_cloud(suite: Suite) -> bool:
    return suite.is_the_first


EVERY_OFFER = _every(lambda _: True)
AT_THE_CORE = _every(lambda _: True, _on_the_first_cloud)
ALWAYS = _every(lambda _: True, lambda _: True)
ONLY_UP = _every(lambda case: case.only_up)
IMMUTABLE = _every(lambda case: case.immutable, _on_the_first_cloud)
SLOW = _every(lambda case: case.is_slow)
FROZEN = _every(lambda case: case.tags_frozen, lambda _: True)
HAZARDOUS = _every(lambda case: case.hazardous, _on_the_first_cloud)


@pytest.fixture(scope="module")
def contract(
    request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OfferContract]:
    """The contract of one offer, in a world of its own."""
    suite, kind = kinds()[request.param]
    with suite.stage(session_sandbox, tmp_path_factory.mktemp("contract"), kind) as stage:
        yield OfferContract(installed()[kind.type], stage.example, stage.world)


# What cannot carry tags is never written to: its tests are those of reading it, beside its example.
@pytest.mark.parametrize("component_type", [offer.type for offer in installed() if offer.taggable])
def test_every_offer_of_the_registry_has_a_case(component_type: str) -> None:
    kind = installed()[component_type].component
    assert kind in {kind for _, kind in kinds().values()}, (
        f"{component_type} is not held to the contract: write its example (declaration, other values, foreign edit) "
        f"and its case (the actions of a person, what blocks a deletion), in the suite.py of its provider's folder here"
    )
    suite, _ = kinds()[kind.__name__]
    assert suite.cases[kind].tags_frozen == installed()[component_type].tags_frozen, "case and offer disagree"


@pytest.mark.rule("T2", "S4", "S17")
@EVERY_OFFER
def test_it_is_created_once_with_its_tags_in_the_call(contract: OfferContract) -> None:
    contract.creates_exactly_one_with_its_tags_in_the_call()


@pytest.mark.rule("S20")
@AT_THE_CORE
def test_the_cycle_after_a_settled_one_is_silent(contract: OfferContract) -> None:
    contract.is_silent_once_settled()


@pytest.mark.rule("S12", "T1")
@EVERY_OFFER
def test_whatever_a_person_changed_comes_back(contract: OfferContract) -> None:
    contract.brings_every_parameter_back()


@pytest.mark.rule("S12", "T1")
@AT_THE_CORE
def test_every_new_declaration_is_carried_out_in_place(contract: OfferContract) -> None:
    contract.carries_out_every_change()


@pytest.mark.rule("S18")
@ONLY_UP
def test_what_only_grows_is_never_taken_back(contract: OfferContract) -> None:
    contract.never_shrinks_what_only_grows()


@pytest.mark.rule("S18")
@IMMUTABLE
def test_what_cannot_change_in_place_destroys_nothing(contract: OfferContract) -> None:
    contract.refuses_every_change_in_place()


@pytest.mark.rule("S18")
@EVERY_OFFER
def test_another_name_destroys_nothing_and_makes_nothing(contract: OfferContract) -> None:
    contract.refuses_another_name()


@pytest.mark.rule("T1", "T2", "T10")
@EVERY_OFFER
def test_the_users_own_tags_are_written_and_no_others(contract: OfferContract) -> None:
    contract.writes_the_declared_tags_and_no_others()


@pytest.mark.rule("G15")
@EVERY_OFFER
def test_ignored_parameters_are_left_alone(contract: OfferContract) -> None:
    contract.leaves_ignored_parameters_alone()


@pytest.mark.rule("G15")
@EVERY_OFFER
def test_ignored_parameters_are_set_at_creation(contract: OfferContract) -> None:
    contract.sets_ignored_parameters_at_creation()


@pytest.mark.rule("O12", "S1", "S5")
@EVERY_OFFER
def test_what_is_import_only_is_only_read(contract: OfferContract) -> None:
    contract.only_imports_what_is_import_only()


@pytest.mark.rule("S16")
@AT_THE_CORE
def test_a_person_who_removes_managed_by_wins_over_an_update(contract: OfferContract) -> None:
    contract.lets_a_person_win_before_an_update()


@pytest.mark.rule("S16", "O10")
@EVERY_OFFER
def test_a_person_who_removes_managed_by_wins_over_a_deletion(contract: OfferContract) -> None:
    contract.lets_a_person_win_before_a_deletion()


@pytest.mark.rule("G1", "G3", "G7", "S7", "S9", "S11", "T6")
@ALWAYS
def test_the_glass_breaks_and_both_tags_hand_it_back(contract: OfferContract) -> None:
    contract.breaks_the_glass_and_is_handed_back()


@pytest.mark.rule("O8", "T4", "T10", "S16")
@EVERY_OFFER
def test_an_operator_moves_its_owner_by_one_call(contract: OfferContract) -> None:
    contract.moves_to_another_owner()


@pytest.mark.rule("G10", "S9")
@EVERY_OFFER
def test_a_force_push_brings_the_declaration_back(contract: OfferContract) -> None:
    contract.pushes_by_force()


@pytest.mark.rule("S9", "T4")
@EVERY_OFFER
def test_the_handshake_stamps_a_lost_owner(contract: OfferContract) -> None:
    contract.stamps_the_owner_where_there_is_none()


@pytest.mark.rule("T8", "G13")
@FROZEN
def test_tags_that_are_said_to_be_frozen_are(contract: OfferContract) -> None:
    contract.says_truly_that_its_tags_are_frozen()


@pytest.mark.rule("G13", "S11", "S17")
@FROZEN
def test_an_override_that_no_tag_can_say_is_remembered(contract: OfferContract) -> None:
    contract.remembers_who_took_it_over_where_no_tag_can_say_it()


@pytest.mark.rule("O10", "O11")
@ALWAYS
def test_it_is_deleted_and_what_is_gone_already_is_no_error(contract: OfferContract) -> None:
    contract.deletes_and_forgets()


@pytest.mark.rule("S13")
@SLOW
def test_a_slow_creation_is_instantiating_and_then_active(contract: OfferContract) -> None:
    contract.shows_the_cloud_at_work()


@pytest.mark.rule("O6", "O15")
@HAZARDOUS
def test_what_blocks_a_deletion_is_named_and_respected(contract: OfferContract) -> None:
    contract.respects_what_blocks_a_deletion()


def test_every_demand_of_the_contract_is_made_here() -> None:
    source = Path(__file__).read_text()
    assert [name for name in OfferContract.demands() if f"contract.{name}()" not in source] == []


@pytest.mark.rule("G12")
@EVERY_OFFER
def test_the_glass_commands_need_nothing_but_what_is_published(contract: OfferContract) -> None:
    contract.prints_commands_that_fill_in()

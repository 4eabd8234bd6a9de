"""Users and tokens on their way through the leader: judged in order, kept with their audit line, told when durable."""

from __future__ import annotations

import asyncio
from pathlib import Path

from control_kit import Stage, eventually, followed, led

from muster.access.audit import verify
from muster.control.leader import STORE_FAILED
from muster.control.tags import ABSENT
from muster.model.access import HOME_OWNER, DropUser, Grant, Role, SetUser, User
from muster.model.event import SetTenant, Submit
from muster.model.reason import DONE, Code, Refused
from muster.model.spec import Spec
from muster.model.tenant import Tenant
from muster.wire.link import Ask, frame
from muster.wire.records import decode_line

ANN = SetUser("ann", User((Grant(Role.USER, "lab"),)), HOME_OWNER)


def test_a_change_is_answered_once_it_is_kept(tmp_path: Path) -> None:
    async def scenes() -> None:
        stage = Stage(tmp_path)
        async with led(stage) as caller:
            stage.store.shut()
            caller.ask(ANN)
            await eventually(stage.store.entered.is_set)
            assert not caller.answers
            assert caller.registered == 0
            stage.store.gate.set()
            [answer] = await caller.answered(1)
            assert answer.reply == DONE
            assert caller.registered == 1
            assert [record.name for _, record in stage.store.read_records(0)] == ["ann"]

    asyncio.run(scenes())


def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    async def scenes() -> None:
        stage = Stage(tmp_path)
        async with led(stage) as caller:
            caller.ask(DropUser("nobody", HOME_OWNER))
            [answer] = await caller.answered(1)
            assert isinstance(answer.reply, Refused)
            assert answer.reply.reason.code is Code.UNKNOWN_USER
            assert not stage.store.read_records(0)
            assert not stage.store.read_audit(0)

    asyncio.run(scenes())


def test_every_privileged_change_has_one_line_in_the_log_and_others_have_none(tmp_path: Path) -> None:
    async def scenes() -> None:
        stage = Stage(tmp_path)
        async with led(stage) as caller:
            caller.ask(SetTenant("lab", Tenant()), SetTenant("lab", Tenant(parent="lab")), by=HOME_OWNER)
            caller.ask(Submit(Spec(("true",))))
            caller.ask(ANN)
            await caller.answered(4)
            lines = [decode_line(link.number, link.data) for link in stage.store.read_audit(0)]
            assert sorted((line.by, line.action, line.subject) for line in lines) == [
                ("owner", "set_tenant", "lab"),
                ("owner", "set_user", "ann"),
            ]
            assert verify(stage.store).broken_at == 0

    asyncio.run(scenes())


def test_a_follower_knows_a_user_when_the_answer_comes_and_after_a_restart(tmp_path: Path) -> None:
    async def scenes() -> None:
        stage = Stage(tmp_path)
        async with led(stage), followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            await follower.ask(ANN)
            assert list(follower.roster.users) == ["ann"]
        async with led(stage) as caller, followed(stage) as follower:
            assert list(follower.roster.users) == ["ann"]
            caller.ask(DropUser("ann", HOME_OWNER))
            [answer] = await caller.answered(1)
            assert answer.reply == DONE
            await eventually(lambda: not follower.roster.users)

    asyncio.run(scenes())


def test_a_store_that_refuses_ends_the_leader_before_anybody_is_told(tmp_path: Path) -> None:
    async def scenes() -> None:
        stage = Stage(tmp_path)
        async with led(stage) as caller:
            stage.store.is_broken = True
            caller.ask(ANN)
            assert await stage.exit_code() == STORE_FAILED
            assert not caller.answers
            assert not stage.store.read_records(0)

    asyncio.run(scenes())


def test_of_two_changes_of_one_thing_the_second_is_refused_however_close_they_come(tmp_path: Path) -> None:
    async def scenes() -> None:
        stage = Stage(tmp_path)
        async with led(stage) as caller:
            stage.store.shut()
            caller.send(
                b"".join(
                    frame(Ask(number, SetTenant("lab", Tenant(weight=number)), HOME_OWNER, ABSENT)) for number in (1, 2)
                )
            )
            stage.store.gate.set()
            answers = {answer.number: answer.reply for answer in await caller.answered(2)}
            assert answers[1] == DONE
            assert isinstance(answers[2], Refused)
            assert answers[2].reason.code is Code.CHANGED_MEANWHILE
            assert stage.world.tenants["lab"].weight == 1
            assert len(stage.store.read_audit(0)) == 1

    asyncio.run(scenes())

"""The structs of ResourceBarrier, which name resources."""

from __future__ import annotations

from functools import cache

from ...frozen import Frozen
from ..memory.resource import Resource
from ..types.arguments import integer
from ..types.enums import (
    ResourceBarrierFlags,
    ResourceBarrierType,
    ResourceStates,
)
from ..types.structs import RESOURCE_BARRIER_ALL_SUBRESOURCES


class ResourceTransitionBarrier(Frozen, many=True):
    """``D3D12_RESOURCE_TRANSITION_BARRIER``."""

    resource: Resource | None
    subresource: int
    state_before: ResourceStates
    state_after: ResourceStates


class ResourceAliasingBarrier(Frozen, many=True):
    """``D3D12_RESOURCE_ALIASING_BARRIER``; None means any resource."""

    resource_before: Resource | None
    resource_after: Resource | None


class ResourceUavBarrier(Frozen, many=True):
    """``D3D12_RESOURCE_UAV_BARRIER``; None means all UAV accesses of all resources."""

    resource: Resource | None


class ResourceBarrier(Frozen, many=True):
    """``D3D12_RESOURCE_BARRIER``: make one with :meth:`transition`, :meth:`aliasing` or :meth:`uav`."""

    type: ResourceBarrierType
    flags: ResourceBarrierFlags
    barrier: ResourceTransitionBarrier | ResourceAliasingBarrier | ResourceUavBarrier

    @classmethod
    def transition(
        cls,
        resource: Resource | None,
        state_before: ResourceStates,
        state_after: ResourceStates,
        subresource: int = RESOURCE_BARRIER_ALL_SUBRESOURCES,
        flags: ResourceBarrierFlags = ResourceBarrierFlags.NONE,
    ) -> ResourceBarrier:
        """As ``CD3DX12_RESOURCE_BARRIER::Transition``."""
        for value, field in (
            (state_before, "state_before"),
            (state_after, "state_after"),
            (subresource, "subresource"),
            (flags, "flags"),
        ):
            integer(value, field)
        barrier = ResourceTransitionBarrier(resource, subresource, state_before, state_after)
        return cls(ResourceBarrierType.TRANSITION, flags, barrier)

    @classmethod
    def aliasing(cls, resource_before: Resource | None, resource_after: Resource | None) -> ResourceBarrier:
        """As ``CD3DX12_RESOURCE_BARRIER::Aliasing``."""
        if resource_before is None and resource_after is None:
            return _any_aliasing()
        barrier = ResourceAliasingBarrier(resource_before, resource_after)
        return cls(ResourceBarrierType.ALIASING, ResourceBarrierFlags.NONE, barrier)

    @classmethod
    def uav(cls, resource: Resource | None) -> ResourceBarrier:
        """As ``CD3DX12_RESOURCE_BARRIER::UAV``."""
        if resource is None:
            return _any_uav()
        return cls(ResourceBarrierType.UAV, ResourceBarrierFlags.NONE, ResourceUavBarrier(resource))


# Barriers that name no resource, as most of most programs.


@cache
def _any_uav() -> ResourceBarrier:
    return ResourceBarrier(ResourceBarrierType.UAV, ResourceBarrierFlags.NONE, ResourceUavBarrier(None))


@cache
def _any_aliasing() -> ResourceBarrier:
    barrier = ResourceAliasingBarrier(None, None)
    return ResourceBarrier(ResourceBarrierType.ALIASING, ResourceBarrierFlags.NONE, barrier)

/* watch_atomics.c - groups that are ordered by atomic accesses.
 *
 * No barrier orders two groups.  But a thread that has executed a fence and then an atomic access releases what it, and
 * what others of its group before a common barrier, did before; a thread of a later group that accesses the same place
 * atomically acquires it.  So the last group that counts itself may read what all others have written.  Groups run one
 * after another, so that an atomic access of a group comes after all those of the groups before it.
 *
 * Only one step is followed: what a group has acquired is not released by it again, unless the place is the same. */
#include <stdlib.h>

#include "watch_state.h"

#define MOST_ACQUIRED 64               /* places of one group that are remembered */
#define MOST_RELEASES (UINT64_C(1) << 22)

static uint64_t slot_of(uint64_t address, uint64_t room) {
    return (address * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (room - 1);
}

/* The place with the address, or the free one in which it belongs. */
static dmlk_sync_place *place_in(dmlk_sync_place *places, uint64_t room, uint64_t address) {
    uint64_t slot = slot_of(address, room);
    while (places[slot].address != 0 && places[slot].address != address) {
        slot = (slot + 1) & (room - 1);
    }
    return &places[slot];
}

static bool grow(dmlk_atomics *atomics) {
    const uint64_t room = atomics->room == 0 ? 64 : 2 * atomics->room;
    dmlk_sync_place *places = calloc(room, sizeof *places);
    if (places == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < atomics->room; i++) {
        if (atomics->places[i].address != 0) {
            *place_in(places, room, atomics->places[i].address) = atomics->places[i];
        }
    }
    free(atomics->places);
    atomics->places = places;
    atomics->room = room;
    return true;
}

/* The thread's own entry for the place, if it has one in this group. */
static dmlk_release *own_release(const dmlk_sync_place *place, uint64_t start, uint32_t thread) {
    for (uint64_t i = place->count; i > 0 && place->releases[i - 1].start == start; i--) {
        if (place->releases[i - 1].thread == thread) {
            return &place->releases[i - 1];
        }
    }
    return NULL;
}

static void release(dmlk_shader_watch *watch, uint64_t address, uint32_t thread) {
    dmlk_atomics *atomics = &watch->atomics;
    dmlk_order *order = &watch->buffers;
    const dmlk_release made = {order->start, dmlk_safe_clock(watch, order, thread), order->start + order->fences[thread], thread};
    if ((made.safe <= order->start && made.clock == order->start) || atomics->releases == MOST_RELEASES ||
        (2 * atomics->count >= atomics->room && !grow(atomics))) {
        return;
    }
    dmlk_sync_place *place = place_in(atomics->places, atomics->room, address);
    dmlk_release *own = own_release(place, order->start, thread);
    if (own != NULL) {
        *own = made;
        return;
    }
    if (place->count == place->releases_room) {
        const uint64_t room = place->count == 0 ? 4 : 2 * place->count;
        dmlk_release *releases = realloc(place->releases, room * sizeof *releases);
        if (releases == NULL) {
            return;
        }
        place->releases = releases;
        place->releases_room = room;
    }
    atomics->count += place->address == 0;
    place->address = address;
    place->releases[place->count++] = made;
    atomics->releases++;
}

/* Remembers that the thread has seen what others have released at the place. */
static void acquire(dmlk_shader_watch *watch, uint64_t address, uint32_t thread) {
    dmlk_atomics *atomics = &watch->atomics;
    if (atomics->count == 0 || place_in(atomics->places, atomics->room, address)->address == 0) {
        return;
    }
    if (atomics->acquired_group != watch->groups) {
        atomics->acquired_group = watch->groups;
        atomics->acquired_count = 0;
    }
    for (uint32_t i = 0; i < atomics->acquired_count; i++) {
        if (atomics->acquired[i].address == address && atomics->acquired[i].thread == thread) {
            return;
        }
    }
    if (atomics->acquired_count < MOST_ACQUIRED) {
        atomics->acquired[atomics->acquired_count++] = (dmlk_acquired){address, thread, watch->arrived[thread]};
    }
}

void dmlk_note_atomic(dmlk_shader_watch *watch, uint64_t address, uint32_t thread) {
    watch->has_atomics = true;
    acquire(watch, address, thread);
    if (watch->buffers.most > 0) {
        release(watch, address, thread);
    }
}

/* The time at which the group of a record began. */
static uint64_t start_of(const dmlk_shader_watch *watch, dmlk_record record) {
    return watch->starts[dmlk_group_of(watch, record, false)].clock[0];
}

static bool is_released_at(const dmlk_sync_place *place, uint64_t start, dmlk_record record) {
    uint64_t first = 0, end = place->count;
    while (first < end) { /* the first one of the group */
        const uint64_t middle = first + (end - first) / 2;
        if (place->releases[middle].start < start) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    for (; first < place->count && place->releases[first].start == start; first++) {
        const dmlk_release *made = &place->releases[first];
        if (dmlk_clock_of(record) < made->safe ||
            (made->thread == dmlk_thread_of(record) && dmlk_clock_of(record) < made->clock)) {
            return true;
        }
    }
    return false;
}

bool dmlk_is_acquired(const dmlk_shader_watch *watch, dmlk_record earlier, uint32_t thread) {
    const dmlk_atomics *atomics = &watch->atomics;
    if (atomics->acquired_count == 0 || atomics->acquired_group != watch->groups) {
        return false;
    }
    const uint64_t start = start_of(watch, earlier);
    for (uint32_t i = 0; i < atomics->acquired_count; i++) {
        const dmlk_acquired *acquired = &atomics->acquired[i];
        if ((acquired->thread == thread || acquired->passed < watch->arrived[thread]) &&
            is_released_at(place_in(atomics->places, atomics->room, acquired->address), start, earlier)) {
            return true;
        }
    }
    return false;
}

void dmlk_free_atomics(dmlk_atomics *atomics) {
    for (uint64_t i = 0; i < atomics->room; i++) {
        free(atomics->places[i].releases);
    }
    free(atomics->places);
}

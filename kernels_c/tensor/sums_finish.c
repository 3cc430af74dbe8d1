/* sums_finish.c - see sums_finish.h. */
#include "sums_finish.h"

#include <math.h>
#include <string.h>

/* The last part of a finish that is set; others may follow in this order. */
enum stage { SUMS, FLOATS, FACTOR, SUMMAND, ADDED, LOW, HIGH, BYTES };

struct search {
    const dmlk_followers *followers;
    dmlk_sums_finish *finish;
    enum stage stage;
    const uint8_t *value; /* the output that the next function reads */
};

static const uint8_t *output_of(const dmlk_follower *f) { return f->base[f->operands - 1]; }

static float number_of(const dmlk_follower *f) {
    float number;
    memcpy(&number, f->numbers, sizeof number);
    return number;
}

/* Moves to a later stage, unless it or one behind it is set. */
static bool reach(struct search *s, enum stage stage) {
    const bool is_later = s->stage != SUMS && stage > s->stage;
    s->stage = stage;
    return is_later;
}

static bool set_low(struct search *s, float low) {
    s->finish->is_bounded = true;
    s->finish->low = low;
    s->finish->high = INFINITY;
    return reach(s, LOW) && dmlk_is_usual_low(low);
}

static bool set_high(struct search *s, float high) {
    const bool has_low = s->stage == LOW;
    s->finish->high = high;
    return has_low && reach(s, HIGH) && dmlk_is_usual_high(high);
}

/* A function of the value and a number. */
static bool set_number(struct search *s, const dmlk_follower *f) {
    const float number = number_of(f);
    switch (f->known) {
    case DMLK_MULTIPLY: s->finish->factor = number; return reach(s, FACTOR);
    case DMLK_ADD: s->finish->summand = number; return reach(s, SUMMAND);
    case DMLK_LOW: return set_low(s, number);
    case DMLK_HIGH: return set_high(s, number);
    default: return false;
    }
}

/* Adds a tensor that no packet of the chain writes. */
static bool set_added(struct search *s, const dmlk_follower *f, uint32_t operand) {
    const uint8_t *added = f->base[operand];
    bool is_apart = added != s->followers->base;
    for (const dmlk_follower *before = s->followers->each; before < f; before++) {
        is_apart = is_apart && added != output_of(before);
    }
    s->finish->added = (const float *)(const void *)added;
    return is_apart && f->known == DMLK_ADD && reach(s, ADDED);
}

static bool set_step(struct search *s, const dmlk_follower *f) {
    memcpy(&s->finish->step, f->base[1], sizeof s->finish->step);
    s->finish->zero = *f->base[2];
    s->finish->integers = f->integers;
    s->finish->bytes = f->base[3];
    return reach(s, BYTES);
}

/* Adds a function to the finish; false: it cannot be a part of it. */
static bool set_function(struct search *s, const dmlk_follower *f) {
    const uint32_t operand = f->operands == 3 && (f->number == 0 || (f->number < 0 && f->base[0] != s->value)) ? 1 : 0;
    if (f->base[operand] != s->value) {
        return false;
    }
    if (f->operands == 3) {
        return f->number >= 0 ? set_number(s, f) : set_added(s, f, !operand);
    }
    switch (f->known) {
    case DMLK_CAST: s->stage = s->stage == SUMS ? FLOATS : BYTES; return s->stage == FLOATS;
    case DMLK_SCALE:
        s->finish->factor = f->low;
        s->finish->summand = f->high;
        return reach(s, FACTOR) && reach(s, SUMMAND);
    case DMLK_RELU: return set_low(s, 0);
    case DMLK_LOW: return f->low != 0 && set_low(s, f->low);
    case DMLK_LOW_AND_HIGH: return f->low != 0 && set_low(s, f->low) && set_high(s, f->high);
    case DMLK_QUANTIZE: return set_step(s, f);
    default: return false;
    }
}

/* Whether the value that follower number `i` reads need not be written before, or can be: as the only floats. */
static bool may_pass(const dmlk_followers *followers, uint32_t i) {
    const dmlk_follower *f = &followers->each[i];
    const bool is_passed = i == 0 ? followers->is_passed : f[-1].is_passed;
    const uint8_t *value = i == 0 ? followers->base : output_of(&f[-1]);
    return is_passed || output_of(f) == value || f->known == DMLK_QUANTIZE;
}

uint32_t dmlk_find_sums_finish(const dmlk_followers *followers, dmlk_sums_finish *finish) {
    *finish = (dmlk_sums_finish){.factor = 1, .summand = -0.0f, .step = 1};
    if (followers == NULL) {
        return 0;
    }
    if (followers->scaling != NULL) {
        finish->scaling = followers->scaling;
        finish->base = followers->scaling->out->base;
        finish->bytes = followers->scaling->out->base;
        finish->zero = followers->scaling->zero;
        finish->integers = followers->scaling->type;
        return 1;
    }
    finish->base = followers->base;
    struct search s = {followers, finish, SUMS, followers->base};
    uint32_t count = 0;
    for (bool found = true; found && count < followers->count && may_pass(followers, count);) {
        const dmlk_sums_finish before = *finish;
        const dmlk_follower *f = &followers->each[count];
        found = set_function(&s, f);
        if (found) {
            s.value = output_of(f);
            count++;
        } else {
            *finish = before;
        }
    }
    if (count == 0) {
        return 0;
    }
    const bool quantizes = finish->bytes != NULL;
    const dmlk_follower *last = &followers->each[count - 1], *floats = quantizes ? last - 1 : last;
    if (!quantizes || !floats->is_passed) {
        finish->floats = (float *)(void *)output_of(floats);
    }
    return count;
}

"""Public methods of API objects that are for the layers above and not part of the API."""

INTERNAL = {
    *("title", "part", "discard", "check_open", "forget", "use", "slots"),
    *("start", "records_with", "may_record", "reject", "use_all", "need", "announce"),
    *("begin_with", "check_pipeline", "change_heaps", "lose_compute_state", "matches"),
    *("descriptors", "complete", "alone", "uses", "at_submit", "budget_changed"),
}

"""The definitions of the operators: one module per operator or family.

The name of a module begins the names of its operators, as ``resample`` does RESAMPLE2, or ``FAMILIES`` says
what their names begin with.  ``families`` has what several modules share.
"""

FAMILIES = {
    "argmax_argmin": ("argmax", "argmin"),
    "fold_unfold": ("fold", "unfold"),
    "gather_scatter": ("gather_elements", "gather_nd", "scatter"),
    "join_split": ("join", "split"),
    "pooling": ("average_pooling", "lp_pooling", "max_pooling"),
    "quantize": ("dequantize", "element_wise_dequantize_linear", "element_wise_quantize_linear"),
    "recurrent": ("gru", "lstm", "rnn"),
    "softmax": ("activation_hardmax", "activation_log_softmax", "activation_softmax"),
    "space_depth": ("depth_to_space", "space_to_depth"),
}
"""Modules of several operators, and with what the names of these begin."""

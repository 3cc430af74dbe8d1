"""Every check and every rule of the API by id: severity, moment, rule, D3D12 message id, page."""

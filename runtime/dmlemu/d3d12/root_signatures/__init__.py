"""Root signatures as bytes and as data: serialized, read, validated and converted between versions."""

"""What the definitions of several operators share: base classes, rules, references."""

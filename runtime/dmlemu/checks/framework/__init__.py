"""What every check is made of: subscription, names of commands, the manager."""

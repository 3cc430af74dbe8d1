"""Resource barriers and the errors of resource states; imports memory and what that room may import."""

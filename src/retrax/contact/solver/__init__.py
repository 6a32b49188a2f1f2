"""The Coulomb problem of bodies that touch: impulses, stick and slip, solved by Newton."""

"""Names of ``jax.custom_derivatives``."""

from hologram.transform.closures import closure_convert, custom_gradient
from hologram.transform.custom import custom_jvp, custom_vjp

__all__ = ["closure_convert", "custom_gradient", "custom_jvp", "custom_vjp"]

from tests.support.pages.browser import browser

__all__ = ["browser"]

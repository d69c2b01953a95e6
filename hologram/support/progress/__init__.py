"""Progress bars: what counts, who looks at the counts, and how they are drawn."""

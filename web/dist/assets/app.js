// The page is not built yet.

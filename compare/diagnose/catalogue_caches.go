package diagnose

// cacheRows are mistakes in caches.
var cacheRows = []Row{}

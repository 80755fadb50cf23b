package health

// For tests of what a machine without a limit, or with another one, would show.
var ParseMeminfo = parseMeminfo

// Limit is limitMemory.
func (m MemorySize) Limit(limit, used int64) MemorySize { return m.limitMemory(limit, used) }

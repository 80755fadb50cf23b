package capture

// What the tests need to kill a writer in the middle of a write.
type (
	Disk   = disk
	File   = file
	OSDisk = osDisk
)

// CreateOn is Create on another disk.
var CreateOn = createOn

// Package keyorder finds the order of an engine's cached keys. A ring buffer shows its slots in memory order, not from the oldest key to the
// newest.
package keyorder

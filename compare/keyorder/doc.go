// Package keyorder finds the order in which an engine has its cached keys. A ring buffer shows its slots as they lie, not from
// the oldest key to the newest.
package keyorder

// Package session goes from settings to two open traces, and from two traces to a comparison of them. It decides what a
// person would otherwise have to: which reference fits and is the best there is, which settings apply, what is stale,
// which checkpoint certifies a trace, which limits hold.
//
// The packages below it have the parts: orders, which order a model or a trace has; job, an open model with its input; choice, the reference of a job;
// noise, the noise floor. Here the local side is captured, and a list of steps goes from what was asked to the options of package compare.
//
// It reads no command line and prints no result. Settings and Env, of internal/settings, and Asked are plain data; remarks go to a writer.
package session

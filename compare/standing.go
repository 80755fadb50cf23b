package compare

import (
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
)

// certify isolates a row's entry and lets both verdicts decide: an operation that is wrong by itself is a mismatch however
// little it shows, and an error that only accumulated is none.
//
// An entry that the order has the capturing side recompute, and that the local engine fired all the same, is the engine's
// own: the next one may be right given it, so that its fault would be seen nowhere else.
func (w *walker) certify(r *Row) error {
	if w.chain == nil || r.Class == gate.Shape || r.Derived && w.o.Isolator.Recomputed(r.Name) {
		return nil
	}
	if r.Firing > 0 {
		w.notIsolated(r, "the order computes it once a pass: of what was fired again, nothing is known")
		return nil
	}
	got, err := w.chain.At(w.ctx, r.Name, r.Pass)
	if err != nil {
		return err
	}
	if r.Derived && (got.Cert == nil || got.Cert.Outcome != certify.Bug) && !(w.o.Alone && got.Misfit != nil) {
		return nil // the reference's is no tensor of an engine, so that there is nothing else to hold it to
	}
	r.Derived = false
	r.Isolated = got.Cert
	if w.notIsolated(r, got.Why); w.o.Alone && got.Misfit != nil { // there is no other side to differ from
		r.mismatch(got.Misfit.Class, "it "+got.Misfit.Is)
		return nil
	}
	if err := w.given(r); err != nil {
		return err
	}
	if c := got.Cert; c != nil && c.Outcome == certify.NotCertified {
		why := "op unverified: the walk's " + c.Unverified + " has not reproduced transformers, so it certifies nothing"
		r.Notes = append(r.Notes, Note{OpUnverified, why})
		w.notIsolated(r, why)
	}
	if why := w.wrong(got); why != "" {
		if r.Verdict == Mismatch {
			why = r.Detail + "; " + why
		}
		class := gate.Value
		if w.o.Alone && r.has(BothNaN) {
			class, why = gate.NonFinite, "NaN or infinite where it should not be; "+why
		}
		if r.Class == gate.NonFinite { // an allow-list tells it from a wrong number
			class = gate.NonFinite
		}
		r.mismatch(class, why)
		r.Decided = ByIsolation
		return nil
	}
	if c := got.Cert; c != nil && c.Good() && r.Class == gate.DType && !w.o.StrictDType && w.wider(r) {
		r.Verdict, r.Class, r.Detail = Match, "", "" // a finding says how the engine's arithmetic differs
	}
	if r.Verdict == Mismatch && r.Class == gate.Value && r.Gate.Tolerant() && !r.otherKeys() && got.Whole {
		return w.excuse(r)
	}
	return nil
}

// notIsolated says why a row has no certificate, if there is a reason. A trace alone is not judged otherwise.
func (w *walker) notIsolated(r *Row, why string) {
	if r.NotIsolated = why; why != "" && w.o.Alone {
		r.Verdict, r.Detail = Unverified, why
	}
}

// wrong says what isolation accuses, empty if nothing: the operation itself, or one before it that no row stands for.
func (w *walker) wrong(got *certify.Link) string {
	if c := got.Cert; c != nil && c.Outcome == certify.Bug {
		return c.Detail()
	}
	if got.Wrong != "" && !w.Compared(got.Wrong) {
		return got.Wrong + ", which it was computed from and which was not compared, is " + w.chain.Bug(got.Wrong).Detail()
	}
	return ""
}

// excuse turns a mismatch by what accumulated into a drift, if the reference is as right by itself as the local side: then
// both computed the same model from the same tokens, and only rounding is between them. A reference that is not has other
// weights or settings, is damaged, or is of a transformers that this order does not describe.
func (w *walker) excuse(r *Row) error {
	if may, err := w.o.Isolator.MayExcuse(); err != nil || !may {
		return err
	}
	const right = "every operation from the token ids to here is right on the local side's own inputs"
	if w.refChain == nil {
		r.Detail += "; " + right + ", but the reference cannot be held to the same"
		return nil
	}
	ref, err := w.refChain.At(w.ctx, r.Name, r.Pass)
	switch {
	case err != nil:
		return err
	case ref.Whole:
		r.Notes = append(r.Notes, Note{Drift, right + ", and on the reference's; accumulated, " + r.Detail})
		r.Verdict, r.Class, r.Detail = Match, "", ""
	case ref.Broken != "":
		r.Detail += "; " + right + ", and those of the reference are not: " + ref.Broken
	default:
		r.Detail += "; " + right + ", but the reference does not show as much"
	}
	return nil
}

// otherKeys reports whether the sides mask other elements: that is no number that rounding moves.
func (r *Row) otherKeys() bool {
	return r.Metrics != nil && r.Metrics.Pattern != nil && r.Metrics.Pattern.Gained+r.Metrics.Pattern.Lost > 0
}

// wider reports whether a row has more digits on the local side than the order gives it.
func (w *walker) wider(r *Row) bool {
	d, err := hooks.ParseDType(r.Local.DType)
	return err == nil && w.chain.Wider(r.Name, d)
}

// Matches reports whether a row with this key matches.
func (w *walker) Matches(key string) bool { return w.verdicts[key] == Match }

// Compared reports whether there is a row with this key.
func (w *walker) Compared(key string) bool {
	_, compared := w.verdicts[key]
	return compared
}

package firestore

import (
	"strconv"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// maxTransforms is Firestore's limit of field transforms on one document in one
// commit.
const maxTransforms = 500

// maxCells is how many cells a row may have so that every step of it, a refund
// of all of them included (two transforms each), fits into one write.
const maxCells = maxTransforms / 2

// fields holds the field names of all slots, made once: names are short because
// a document's size is billed, and need no quoting in a field path.
var fields = func() (names [rows.MaxSlots]string) {
	for i := range names {
		names[i] = "s" + strconv.Itoa(i)
	}
	return names
}()

var (
	exists     = &firestorepb.Precondition{ConditionType: &firestorepb.Precondition_Exists{Exists: true}}
	expiryMask = &firestorepb.DocumentMask{FieldPaths: []string{expiryField}}
	emptyMask  = &firestorepb.DocumentMask{}
	zero       = integer(0)
)

func integer(n int64) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_IntegerValue{IntegerValue: n}}
}

// newWrite returns the one Write that performs r on the document name: for each
// cell, in order, maximum with the floor, increment, and for a lowered cell
// maximum with 0. A transform is also how a cell of the row is read.
func newWrite(name string, r *core.Row) (*firestorepb.Write, error) {
	if len(r.Cells) > maxCells {
		return nil, core.ErrUnsupported
	}
	w := &firestorepb.Write{UpdateMask: emptyMask}
	doc := &firestorepb.Document{Name: name}
	w.Operation = &firestorepb.Write_Update{Update: doc}
	switch {
	case !r.Creates():
		// The document has its expiry already, and must not be made by a refund.
		w.CurrentDocument = exists
	case r.Until > 0:
		w.UpdateMask = expiryMask
		doc.Fields = map[string]*firestorepb.Value{expiryField: {
			ValueType: &firestorepb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: r.Until}},
		}}
	}
	w.UpdateTransforms = make([]*firestorepb.DocumentTransform_FieldTransform, 0, len(r.Cells)+1)
	for i := range r.Cells {
		c := &r.Cells[i]
		if int(c.Slot) >= len(fields) {
			return nil, core.ErrUnsupported
		}
		path := fields[c.Slot]
		if c.Floor > 0 {
			w.UpdateTransforms = append(w.UpdateTransforms, maximum(path, integer(c.Floor)))
		}
		if c.Add != 0 || c.Floor <= 0 {
			w.UpdateTransforms = append(w.UpdateTransforms, &firestorepb.DocumentTransform_FieldTransform{
				FieldPath:     path,
				TransformType: &firestorepb.DocumentTransform_FieldTransform_Increment{Increment: integer(c.Add)},
			})
		}
		if c.Add < 0 {
			w.UpdateTransforms = append(w.UpdateTransforms, maximum(path, zero))
		}
	}
	if len(w.UpdateTransforms) > maxTransforms {
		return nil, core.ErrUnsupported
	}
	return w, nil
}

func maximum(path string, v *firestorepb.Value) *firestorepb.DocumentTransform_FieldTransform {
	return &firestorepb.DocumentTransform_FieldTransform{
		FieldPath:     path,
		TransformType: &firestorepb.DocumentTransform_FieldTransform_Maximum{Maximum: v},
	}
}

// setValues puts the results of w's transforms into the cells of r: a cell's
// value is the result of its last transform. It reports false when the answer
// does not fit the question.
func setValues(r *core.Row, results []*firestorepb.Value) bool {
	next := 0
	for i := range r.Cells {
		c := &r.Cells[i]
		if c.Floor > 0 {
			next++
		}
		if c.Add != 0 || c.Floor <= 0 {
			next++
		}
		if c.Add < 0 {
			next++
		}
		if next > len(results) {
			return false
		}
		c.Value = number(results[next-1])
	}
	return next == len(results)
}

// number reads a counter. A foreign document may hold anything: what is not a
// number counts as absent, as it does for Firestore's own transforms.
func number(v *firestorepb.Value) int64 {
	switch t := v.GetValueType().(type) {
	case *firestorepb.Value_IntegerValue:
		return max(0, t.IntegerValue)
	case *firestorepb.Value_DoubleValue:
		if t.DoubleValue > 0 && t.DoubleValue < 1<<62 {
			return int64(t.DoubleValue)
		}
	}
	return 0
}

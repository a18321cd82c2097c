package dynamodb

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/stilehq/stile/core"
	"github.com/stilehq/stile/core/rows"
)

// The bounds of one request. An expression may have 4 KB and 300 operators; a
// condition on one slot has up to four operators and 45 bytes.
const (
	maxCells       = 128
	maxConditioned = 64
)

// fields holds the attribute names of all slots, made once: names are short
// because they count towards an item's billed size, and none is a reserved word.
var fields = func() (names [rows.MaxSlots]string) {
	for i := range names {
		names[i] = "s" + strconv.Itoa(i)
	}
	return names
}()

// A change is what a row does to one slot. If the slot holds at least need, no
// floor and no zero line is met on the way and the change is simply + total; that
// is one ADD for any old value, and the reason why counting needs no read.
type change struct {
	slot  uint16
	cells []int // indices into Row.Cells, in order
	total int64
	need  int64
	write bool // some cell has an Add or a Floor
}

// newPlan groups the cells of r by slot, in order of appearance.
func newPlan(r *core.Row) ([]change, error) {
	if len(r.Cells) > maxCells {
		return nil, unsupported("a row of %d cells, at most %d fit", len(r.Cells), maxCells)
	}
	plan := make([]change, 0, len(r.Cells))
	conditioned := 0
	for i := range r.Cells {
		c := &r.Cells[i]
		if int(c.Slot) >= len(fields) {
			return nil, unsupported("slot %d", c.Slot)
		}
		at := 0
		for at < len(plan) && plan[at].slot != c.Slot {
			at++
		}
		if at == len(plan) {
			plan = append(plan, change{slot: c.Slot})
		}
		p := &plan[at]
		before := p.need
		p.cells = append(p.cells, i)
		p.need = max(p.need, c.Floor-p.total)
		p.total += c.Add
		p.need = max(p.need, -p.total)
		p.write = p.write || c.Add != 0 || c.Floor > 0
		if before <= 0 && p.need > 0 {
			conditioned++
		}
	}
	if conditioned > maxConditioned {
		return nil, unsupported("a row of %d cells with a floor or a refund, at most %d fit", conditioned, maxConditioned)
	}
	return plan, nil
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf("dynamodb: "+format+": %w: %w", append(args, core.ErrUnsupported, core.ErrNotApplied)...)
}

// item is a record's attributes.
type item = map[string]types.AttributeValue

// An update is one attempt at a row: the request and what it will have stored in
// those slots that it sets outright.
type update struct {
	in  *ddb.UpdateItemInput
	set map[uint16]bool // slots that were below need
	old item
}

// newUpdate builds the request that performs plan on the record key. old is the
// record as it was seen a moment ago, nil if it was not seen: then every slot is
// taken to hold what it needs. Conditions make sure that the guess was right.
func newUpdate(table, key string, r *core.Row, plan []change, old item, seen bool) update {
	u := update{old: old}
	values := item{}
	var sets, adds, conditions []string
	in := &ddb.UpdateItemInput{
		TableName: aws.String(table),
		Key:       item{keyAttribute: &types.AttributeValueMemberS{Value: key}},
		// What is here now saves a read when a condition fails.
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		ReturnValues:                        types.ReturnValueUpdatedNew,
	}
	value := func(n int64) string {
		text := strconv.FormatInt(n, 10)
		name := ":v" + text
		if n < 0 {
			name = ":m" + text[1:]
		}
		values[name] = &types.AttributeValueMemberN{Value: text}
		return name
	}
	if !r.Creates() {
		conditions = append(conditions, "attribute_exists("+keyAttribute+")")
	} else if r.Until > 0 {
		in.ExpressionAttributeNames = map[string]string{"#t": ttlAttribute}
		sets = append(sets, "#t="+value(r.Until))
	}
	for i := range plan {
		p := &plan[i]
		f := fields[p.slot]
		if !p.write {
			in.ReturnValues = types.ReturnValueAllNew // the only way to see it
			continue
		}
		v := number(old[f])
		switch {
		case !seen || v >= p.need:
			if p.need > 0 {
				conditions = append(conditions, f+">="+value(p.need))
			}
			adds = append(adds, f+" "+value(p.total))
			continue
		case len(p.cells) == 1:
			// Whatever is below need ends at the same value.
			conditions = append(conditions, "(attribute_not_exists("+f+") OR "+f+"<"+value(p.need)+")")
		case old[f] == nil:
			conditions = append(conditions, "attribute_not_exists("+f+")")
		default:
			conditions = append(conditions, f+"="+value(v))
		}
		if u.set == nil {
			u.set = map[uint16]bool{}
		}
		u.set[p.slot] = true
		for _, at := range p.cells {
			v = step(v, &r.Cells[at])
		}
		sets = append(sets, f+"="+value(v))
	}
	var b strings.Builder
	if len(sets) > 0 {
		b.WriteString("SET " + strings.Join(sets, ","))
	}
	if len(adds) > 0 {
		b.WriteString(" ADD " + strings.Join(adds, ","))
	}
	in.UpdateExpression = aws.String(b.String())
	if len(conditions) > 0 {
		in.ConditionExpression = aws.String(strings.Join(conditions, " AND "))
	}
	in.ExpressionAttributeValues = values
	u.in = in
	return u
}

// step is the contract's one operation.
func step(v int64, c *core.Cell) int64 { return max(0, max(v, c.Floor)+c.Add) }

// setValues derives every cell's value from the record as the update left it.
func (u *update) setValues(r *core.Row, plan []change, after item) error {
	for i := range plan {
		p := &plan[i]
		v := int64(0)
		switch {
		case u.set[p.slot]:
			v = number(u.old[fields[p.slot]])
			for _, at := range p.cells {
				v = step(v, &r.Cells[at])
				r.Cells[at].Value = v
			}
			continue
		case p.write && after[fields[p.slot]] == nil:
			// Applied, but to what end is unknown.
			return &Error{cause: errors.New("the answer lacks the attribute " + fields[p.slot])}
		default:
			v = number(after[fields[p.slot]]) - p.total
		}
		for _, at := range p.cells {
			v += r.Cells[at].Add
			r.Cells[at].Value = v
		}
	}
	return nil
}

// number reads a counter. What is absent or no number is 0; what does not fit
// saturates.
func number(v types.AttributeValue) int64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(n.Value, 64)
		switch {
		case err != nil || f <= 0:
			return 0
		case f >= math.MaxInt64:
			return math.MaxInt64
		}
		return int64(f)
	}
	return max(0, i)
}

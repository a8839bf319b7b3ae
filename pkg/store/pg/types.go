package pg

import (
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// adaptTypes lets a connection pass flags as numbers, and back.
func adaptTypes(conn *pgx.Conn) {
	types := conn.TypeMap()
	types.TryWrapEncodePlanFuncs = append([]pgtype.TryWrapEncodePlanFunc{flagAsNumber}, types.TryWrapEncodePlanFuncs...)
	types.TryWrapScanPlanFuncs = append([]pgtype.TryWrapScanPlanFunc{numberAsFlag}, types.TryWrapScanPlanFuncs...)
	types.TryWrapScanPlanFuncs = append(types.TryWrapScanPlanFuncs, textAsNumber)
}

// textAsNumber lets an int take a number in a text, such as one of json_each.
func textAsNumber(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	if _, ok := target.(*int); !ok {
		return nil, nil, false
	}
	return new(textPlan), new(string), true
}

type textPlan struct{ next pgtype.ScanPlan }

func (p *textPlan) SetNext(next pgtype.ScanPlan) { p.next = next }

func (p *textPlan) Scan(src []byte, target any) (err error) {
	var text string
	if err := p.next.Scan(src, &text); err != nil {
		return err
	}
	*target.(*int), err = strconv.Atoi(text)
	return err
}

// numberAsFlag lets a bool take a number: what is not 0 is true.
func numberAsFlag(target any) (pgtype.WrappedScanPlanNextSetter, any, bool) {
	if _, ok := target.(*bool); !ok {
		return nil, nil, false
	}
	return new(numberPlan), new(int64), true
}

type numberPlan struct{ next pgtype.ScanPlan }

func (p *numberPlan) SetNext(next pgtype.ScanPlan) { p.next = next }

func (p *numberPlan) Scan(src []byte, target any) error {
	var number int64
	if err := p.next.Scan(src, &number); err != nil {
		return err
	}
	*target.(*bool) = number != 0
	return nil
}

// flagAsNumber lets a bool stand for 0 or 1 where a column is a number: flags are numbers in both engines.
func flagAsNumber(value any) (pgtype.WrappedEncodePlanNextSetter, any, bool) {
	flag, ok := value.(bool)
	if !ok {
		return nil, nil, false
	}
	return new(flagPlan), numberOf(flag), true
}

func numberOf(flag bool) int64 {
	if flag {
		return 1
	}
	return 0
}

type flagPlan struct{ next pgtype.EncodePlan }

func (p *flagPlan) SetNext(next pgtype.EncodePlan) { p.next = next }

func (p *flagPlan) Encode(value any, buf []byte) ([]byte, error) {
	flag, _ := value.(bool)
	return p.next.Encode(numberOf(flag), buf)
}

package pages

import (
	"cmp"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	factrows "arizuko/pkg/facts/rows"
)

// Unit is what the numbers of a chart are: counts by default.
type Unit int

// Units of charts.
const (
	Dollars Unit = iota + 1
	Milliseconds
)

// Chart is bars over columns of time, with a scale from zero on. The same numbers are in a table.
type Chart struct {
	ID, Title, About string
	Unit             Unit
	Over             bool // the bars of a column stand in front of each other, the highest one first, not on each other
	Series           []Series
	Columns          Columns
	Values           [][]float64 // by column and series; Add fills them
}

// Series is the bars of one colour and pattern: Fill is from 0 to 5. List is the path of the list of the rows behind a
// bar, and Filters are names and values in its address.
type Series struct {
	Name    string
	Fill    int
	List    string
	Filters []string
}

// NewSeries makes a series.
func NewSeries(name string, fill int, list string, filters ...string) Series {
	return Series{name, fill, list, filters}
}

// path is the address of the rows of a column.
func (s Series) path(c Column) string {
	query := url.Values{"since": {time.UnixMilli(c.From).UTC().Format(TimeField)},
		"until": {time.UnixMilli(c.Until).UTC().Format(TimeField)}}
	for i := 0; i < len(s.Filters); i += 2 {
		query.Set(s.Filters[i], s.Filters[i+1])
	}
	return s.List + "?" + query.Encode()
}

// Columns are spans of time that follow each other.
type Columns []Column

// Column is a span of time, in unix ms.
type Column struct {
	From, Until int64

	label string
}

// NewColumn makes a column.
func NewColumn(from, until time.Time, layout string) Column {
	return Column{from.UnixMilli(), until.UnixMilli(), from.Format(layout)}
}

// Place is the column that a time is in, -1 for none.
func (c Columns) Place(at int64) int {
	i, _ := slices.BinarySearchFunc(c, at, func(c Column, at int64) int { return cmp.Compare(c.Until, at+1) })
	if i == len(c) || at < c[i].From {
		return -1
	}
	return i
}

// Add adds to the bar of a series in the column that a time is in, if there is one.
func (c *Chart) Add(at int64, series int, v float64) {
	for len(c.Values) < len(c.Columns) {
		c.Values = append(c.Values, make([]float64, len(c.Series)))
	}
	if i := c.Columns.Place(at); i >= 0 {
		c.Values[i][series] += v
	}
}

// TimeField is how an address has a time, in UTC.
const TimeField = "2006-01-02T15:04"

// The view box of a chart, and the most lines of its scale.
const (
	chartWidth  = 1000
	chartHeight = 200
	maxSteps    = 5
)

// ChartBar is a bar, in the units of the view box, and its number in words.
type ChartBar struct {
	Name, Text, Path          string
	X, Y, Width, Height, Fill int
}

// ChartRow is the bars of a column. Path is the address of the rows behind all of them.
type ChartRow struct {
	Label, Path string
	Bars        []ChartBar
}

// height is that of a column, in its unit.
func (c Chart) height(values []float64) (sum float64) {
	for _, v := range values {
		if c.Over {
			sum = max(sum, v)
		} else {
			sum += v
		}
	}
	return sum
}

// scale is the distance between two lines of the scale, and how many there are above zero. Distances are round: 1, 2 or
// 5, with zeros, of a unit in which the numbers can be read.
func (c Chart) scale() (step float64, steps int) {
	most := 0.0
	for _, values := range c.Values {
		most = max(most, c.height(values))
	}
	step = 1
	if c.Unit == Dollars {
		step = 0.0001
	}
	for _, unit := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		if ms := float64(unit.Milliseconds()); c.Unit == Milliseconds && most > ms*5/3 {
			step = ms
		}
	}
	for i := 0; most > maxSteps*step; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	return step, int(math.Ceil(most / step))
}

// words are those of a number.
func (c Chart) words(v float64) string {
	switch c.Unit {
	case Dollars:
		return dollars(factrows.Spend{CostUSD: v})
	case Milliseconds:
		return duration(int64(v))
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// Tick is a line of the scale.
type Tick struct {
	Y    int
	Text string
}

// Ticks are the lines of the scale of a chart that has rows, the highest first.
func (c Chart) Ticks() (all []Tick) {
	step, steps := c.scale()
	for i := steps; i >= 0; i-- {
		all = append(all, Tick{chartHeight - chartHeight*i/steps, c.words(step * float64(i))})
	}
	return all
}

// Marks are the labels below the columns: of every few one, so that there is room.
func (c Chart) Marks() []string {
	all, every := make([]string, len(c.Columns)), max(1, len(c.Columns)/4)
	for i := 0; i+every/2 < len(all); i += every {
		all[i] = c.Columns[i].label
	}
	return all
}

// Rows are the columns that are not empty.
func (c Chart) Rows() (all []ChartRow) {
	step, steps := c.scale()
	for i, values := range c.Values {
		if c.height(values) == 0 {
			continue
		}
		row, base := ChartRow{c.Columns[i].label, Series{List: c.Series[0].List}.path(c.Columns[i]), nil}, 0.0
		y := func(v float64) int { return int(math.Round(chartHeight * (1 - v/(step*float64(steps))))) }
		for j, s := range c.Series {
			x, end := i*chartWidth/len(c.Columns), (i+1)*chartWidth/len(c.Columns)
			b := ChartBar{Name: s.Name, Text: c.words(values[j]), Fill: s.Fill, X: x, Width: end - x - 3}
			if v := values[j]; v > 0 {
				b.Path, b.Y = s.path(c.Columns[i]), min(y(base+v), y(base)-1)
				b.Height = y(base) - b.Y
			}
			if !c.Over {
				base += values[j]
			}
			row.Bars = append(row.Bars, b)
		}
		all = append(all, row)
	}
	return all
}

// Figures is the page of charts. Times are unix ms.
type Figures struct {
	Choices []Choice
	Zone    string        // of its hours and days
	At, Now int64         // At is when the rows were counted, 0 for not yet
	Charts  template.HTML // from the fragment charts of a list of Chart
}

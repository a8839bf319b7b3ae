package routeapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"arizuko/pkg/msg"
)

// RoutesPath is where routd lists, adds and replaces routes, TestPath where it tests a table without a change.
const (
	RoutesPath = "/v1/routes"
	TestPath   = RoutesPath + "/test"
)

const (
	// MaxRoutes is how many rows a whole table may have that replaces the stored one, or is tested.
	MaxRoutes = 5000
	// MaxTested is how many messages one test may ask about.
	MaxTested = 500
)

// Table replaces all routes, by PUT RoutesPath.
type Table struct {
	// Digest is that of the routes that the editor saw: if the stored ones have another by now, it is a conflict.
	Digest string `json:"digest"`
	// Routes are the rows as they shall be. One with an id replaces that row, one without is added, in this order;
	// rows that are not among them are deleted.
	Routes []msg.Route `json:"routes"`
}

// Replaced is the answer: the stored routes, and how many rows were changed.
type Replaced struct {
	Digest  string      `json:"digest"`
	Routes  []msg.Route `json:"routes"`
	Added   int         `json:"added"`
	Changed int         `json:"changed"`
	Deleted int         `json:"deleted"`
}

// Digest identifies the content of a routing table: 64 hex digits.
func Digest(routes []msg.Route) string {
	sum := sha256.New()
	rows := json.NewEncoder(sum)
	for i := range routes {
		_ = rows.Encode(&routes[i]) // a hash takes everything, and a route always marshals
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Test asks for the decisions of the present and an edited table on messages, by POST TestPath. Engagement does not
// count, and no message claims anything for another.
type Test struct {
	Items  []Item      `json:"items"`
	Routes []msg.Route `json:"routes"` // the edited table; rows may be without an id
}

// Tested is the answer: either Problems of the edited rows, or a decision for each item, in their order.
type Tested struct {
	Items    []TestedItem `json:"items"`
	Problems []Problem    `json:"problems"`
}

// TestedItem holds both tables' decisions on a message.
type TestedItem struct {
	ID      int64  `json:"id"`
	Present Answer `json:"present"`
	Edited  Answer `json:"edited"`
}

// Problem is an error in a row of a table, which is named by its index.
type Problem struct {
	Row  int    `json:"row"`
	Text string `json:"text"`
}

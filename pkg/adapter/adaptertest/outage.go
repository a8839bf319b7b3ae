package adaptertest

import "time"

// OutageKind is a way in which a remote cannot be used.
type OutageKind string

// The kinds of outages. All of them break the connections that are open when they begin.
const (
	None            OutageKind = ""                 // none
	Refusing        OutageKind = "refusing"         // connections are refused
	Silent          OutageKind = "silent"           // connections are made, and nothing that is sent arrives
	ResettingTLS    OutageKind = "resetting TLS"    // connections are reset before a request can be sent
	Unanswering     OutageKind = "unanswering"      // requests arrive, are not carried out, and not answered
	CuttingRequests OutageKind = "cutting requests" // requests arrive and are not carried out; then the connection ends
	CuttingAnswers  OutageKind = "cutting answers"  // requests are carried out; then the connection ends
	Paging          OutageKind = "answering a page" // a proxy answers each request with a page of its own
)

// Outage is how a remote cannot be used.
type Outage struct {
	Kind       OutageKind
	Status     int           // of a page
	RetryAfter time.Duration // of a page, 0 for none
	Text       string        // of a page that is plain text, or an object of JSON; "" for HTML
}

package msg

// Target is the own message that an outbound edit, reaction or deletion is about. It is read when that
// row is delivered; the row only names it, in DerivedFrom.
type Target struct {
	Kind  Kind
	Open  bool       // it is still being delivered
	Files int        // how many files it has
	Parts []SentPart // what it was sent as, in order
	Edits []SentEdit // earlier edits of it, in order
}

// SentEdit is an edit that was delivered.
type SentEdit struct {
	Content string
	Parts   []SentPart
}

// SentPart is a part of a delivered row.
type SentPart struct {
	PlatformID string // "" if the platform gave none
	Sent       bool   // or perhaps sent
}

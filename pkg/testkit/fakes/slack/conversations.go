package slack

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The documented page sizes.
const (
	pageOf      = 100
	repliesPage = 1000
	maxPage     = 999
)

func (s *Server) conversationInfo(p params) (any, error) {
	r, err := s.readable(p, "read")
	if err != nil {
		return nil, err
	}
	return fields{"channel": s.info(r)}.ok(), nil
}

type messagesAnswer struct {
	OK       bool             `json:"ok"`
	Messages []any            `json:"messages"`
	HasMore  bool             `json:"has_more"`
	Metadata responseMetadata `json:"response_metadata"`
}

// history is the messages of a conversation, newest first, without those that are only in threads. With oldest and
// without latest the first page is the one closest to oldest, as in one of the two versions of Slack's documentation.
func (s *Server) history(p params) (any, error) {
	r, err := s.readable(p, "history")
	if err == nil {
		err = p.checkRange()
	}
	if err != nil {
		return nil, err
	}
	var all []any
	for _, raw := range r.odd {
		all = append(all, raw)
	}
	for _, m := range slices.Backward(r.messages) {
		if (m.ThreadTS == "" || m.ThreadTS == m.TS || m.isBroadcast) && p.within(m.TS) {
			all = append(all, s.listed(p, m))
		}
	}
	if p.str("oldest") == "" || p.str("latest") != "" {
		return paged(p, all, pageOf)
	}
	slices.Reverse(all)
	answer, err := paged(p, all, pageOf)
	slices.Reverse(answer.Messages)
	return answer, err
}

// replies is a thread, oldest first, with its root on every page.
func (s *Server) replies(p params) (any, error) {
	r, err := s.readable(p, "history")
	if err == nil {
		err = p.checkRange()
	}
	if err != nil {
		return nil, err
	}
	root := r.find(p.str("ts"))
	if root == nil {
		return nil, errorCode("thread_not_found")
	}
	var all []any
	for _, m := range r.messages {
		if m != root && m.ThreadTS == root.TS && p.within(m.TS) {
			all = append(all, s.listed(p, m))
		}
	}
	answer, err := paged(p, all, repliesPage)
	if err != nil {
		return nil, err
	}
	answer.Messages = slices.Insert(answer.Messages, 0, any(s.listed(p, root)))
	return answer, nil
}

// listed is a message as in answers of these two methods.
func (s *Server) listed(p params, m *Message) Message {
	shown := m.snapshot().withReactors(maxReactors)
	if !p.bool("include_all_metadata") || !s.may("metadata.message:read") {
		shown.Metadata = nil
	}
	return shown
}

// rangeForm matches a timestamp of a range: clients also send whole seconds, and zero.
var rangeForm = regexp.MustCompile(`^([0-9]+(\.[0-9]{0,6})?)?$`)

// checkRange refuses an invalid timestamp.
func (p params) checkRange() error {
	for _, name := range []string{"oldest", "latest"} {
		if !rangeForm.MatchString(p.str(name)) {
			return errorCode("invalid_ts_" + name)
		}
	}
	return nil
}

// within reports whether a timestamp is in the range of a request. Timestamps have one length, and
// compare as strings.
func (p params) within(ts string) bool {
	oldest, latest := wholeTS(p.str("oldest")), wholeTS(p.str("latest"))
	if p.bool("inclusive") && (ts == oldest || ts == latest) {
		return true
	}
	return (oldest == "" || ts > oldest) && (latest == "" || ts < latest)
}

// wholeTS adds missing digits to a timestamp: clients also send whole seconds, and zero.
func wholeTS(ts string) string {
	seconds, micros, _ := strings.Cut(ts, ".")
	if strings.Trim(seconds, "0") == "" && strings.Trim(micros, "0") == "" {
		return ""
	}
	micros = (micros + "000000")[:6]
	return strings.Repeat("0", max(0, 10-len(seconds))) + seconds + "." + micros
}

// paged is one page of a list.
func paged(p params, all []any, standard int) (messagesAnswer, error) {
	page, next, err := cutPage(p, all, standard)
	return messagesAnswer{
		OK: true, Messages: append([]any{}, page...), HasMore: next != "", Metadata: responseMetadata{NextCursor: next},
	}, err
}

// cutPage is the page at a cursor, which is the index of its first entry.
func cutPage[T any](p params, all []T, standard int) (page []T, next string, err error) {
	limit := p.int("limit", standard)
	if limit <= 0 {
		limit = standard
	}
	if limit > maxPage && standard != repliesPage || limit > repliesPage {
		return nil, "", errorCode("invalid_limit")
	}
	start := 0
	if cursor := p.str("cursor"); cursor != "" {
		raw, err := base64.StdEncoding.DecodeString(cursor)
		text, ok := strings.CutPrefix(string(raw), "next:")
		before, bad := strconv.Atoi(text)
		if err != nil || !ok || bad != nil || before < 0 || before > len(all) {
			return nil, "", errorCode("invalid_cursor")
		}
		start = before
	}
	end := min(start+limit, len(all))
	if end < len(all) {
		next = base64.StdEncoding.EncodeToString([]byte("next:" + strconv.Itoa(end)))
	}
	return all[start:end], next, nil
}

func (s *Server) listConversations(p params) (any, error) { return s.conversations(p, s.sees) }

// ownConversations are those that the bot is in.
func (s *Server) ownConversations(p params) (any, error) {
	return s.conversations(p, func(r *room) bool { return r.in(s.me) })
}

func (s *Server) conversations(p params, wants func(*room) bool) (any, error) {
	types := p.list("types")
	if len(types) == 0 {
		types = []string{"public_channel"}
	}
	kinds := map[string]string{"public_channel": Public, "private_channel": Private, "im": DM, "mpim": GroupDM}
	var wanted []string
	for _, t := range types {
		kind, known := kinds[t]
		if !known {
			return nil, errorCode("invalid_types")
		}
		if err := s.need(scopeFor(kind, "read")); err != nil {
			return nil, err
		}
		wanted = append(wanted, kind)
	}
	all := []fields{}
	for _, r := range s.sortedRooms() {
		if slices.Contains(wanted, r.Kind) && wants(r) && (!r.Archived || !p.bool("exclude_archived")) {
			all = append(all, s.info(r))
		}
	}
	page, next, err := cutPage(p, all, pageOf)
	return fields{"channels": page, "response_metadata": responseMetadata{NextCursor: next}}.ok(), err
}

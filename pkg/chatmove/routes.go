package chatmove

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"arizuko/pkg/match"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// moveRoutes changes the routes that name a chat by its former address. A row that
// names only its room stays, since other platforms may have a room of that name: a
// copy for the new address follows it. Patterns are an operator's and stay. It returns a description of the changes.
func moveRoutes(tx *store.Tx, from, to string) (done string, err error) {
	var changed, copied []string
	routes, err := tx.Routes(store.Uncancelled())
	for i := 0; err == nil && i < len(routes); i++ {
		r := routes[i]
		expr, whole := movedMatch(r.Match, from, to)
		switch {
		case expr == "":
		case whole:
			changed = append(changed, strconv.FormatInt(r.ID, 10))
			err = tx.Exec(`UPDATE routes SET match = ? WHERE id = ?`, expr, r.ID)
		default:
			copied = append(copied, strconv.FormatInt(r.ID, 10))
			follows := i+1 < len(routes) && routes[i+1].Seq == r.Seq
			r.Match = expr
			if err = copyRoute(tx, r, follows); err == nil {
				i++ // the copy
				routes, err = tx.Routes(store.Uncancelled())
			}
		}
	}
	if err == nil { // webhooks whose answers go there
		err = tx.Exec(`UPDATE registered_groups SET config = replace(config, '"to":' || ?1, '"to":' || ?2)
			WHERE config LIKE '%"to":' || ?1 || '%'`,
			strconv.Quote(from), strconv.Quote(to))
	}
	return describeMovedRoutes(changed, copied), err
}

func describeMovedRoutes(changed, copied []string) string {
	var done []string
	if len(changed) > 0 {
		done = append(done, "routes changed: "+strings.Join(changed, " "))
	}
	if len(copied) > 0 {
		done = append(done, "routes copied for the new address: "+strings.Join(copied, " "))
	}
	return cmp.Or(strings.Join(done, "; "), "no route names it")
}

// copyRoute inserts a row directly after the one that it is a copy of. follows: rows
// of its seq come after it.
func copyRoute(tx *store.Tx, r msg.Route, follows bool) error {
	if follows {
		if err := tx.ShiftRoutes(r.Seq, r.ID+1); err != nil {
			return err
		}
	}
	return tx.PutRoute(&r)
}

// movedMatch is a match expression with the new address in place of the old one,
// "" if it does not name the chat. whole: the row names no other chat, so that
// the new expression may replace the old one.
func movedMatch(expr, from, to string) (moved string, whole bool) {
	_, oldRoom := msg.SplitJID(from)
	_, newRoom := msg.SplitJID(to)
	words := strings.Fields(expr)
	room, named := -1, -1
	for i, word := range words {
		key, pattern, _ := strings.Cut(word, "=")
		switch {
		case key == "chat_jid" && literal(pattern) == from:
			words[i], whole = "chat_jid="+match.Escape(to), true
		case key == "chat_jid":
			return "", false // of another chat, or a pattern
		case key == "room" && literal(pattern) == oldRoom:
			room = i
		case key == "room":
			return "", false
		case key == "platform":
			if ok, err := path.Match(pattern, msg.FamilyOf(from)); err != nil || !ok {
				return "", false
			}
			named = i
		case key == "account": // a group that moves does so for all accounts
			if ok, err := path.Match(pattern, msg.AccountOf(from)); err != nil || !ok {
				return "", false
			}
		}
	}
	switch {
	case room < 0 && !whole:
		return "", false
	case room >= 0:
		words[room] = "room=" + match.Escape(newRoom)
	}
	if whole || named >= 0 && literal(strings.TrimPrefix(words[named], "platform=")) == msg.FamilyOf(from) {
		return strings.Join(words, " "), true
	}
	words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "platform=") })
	return strings.Join(append([]string{"platform=" + match.Escape(msg.FamilyOf(to))}, words...), " "), false
}

// literal is the one value that a pattern of path.Match matches, "" if there may
// be several.
func literal(pattern string) string {
	var text []byte
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '[':
			return ""
		case '\\':
			if i++; i == len(pattern) {
				return ""
			}
		}
		text = append(text, pattern[i])
	}
	return string(text)
}

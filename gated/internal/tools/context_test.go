package tools

import (
	"strings"
	"testing"
)

func TestActivateContextObject_EachEvent_IsListedAndResolved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ event, kind, reason string }{
		{"article_summarized", "article", "activated_by_summary"}, {"summary_reused", "summary", "activated_by_summary"},
		{"url_discussed", "link", "activated_by_url_discussion"}, {"media_inspected", "media.image", "activated_by_media_inspection"},
		{"followup_attached", "message", "activated_by_followup"},
	} {
		f := newFixture(t)
		f.works("activate_context_object", `{"event":"`+c.event+`","kind":"`+c.kind+`","source_message_id":OWN_MESSAGE,"label":"It"}`)
		id := f.fill(c.kind + ":OWN_MESSAGE")
		if got := f.works("list_active_context_objects", `{}`); !strings.Contains(got, `"`+id+`"`) || !strings.Contains(got, c.reason) || !strings.Contains(got, `"owned_by_sender":true`) {
			t.Errorf("%s: %s", c.event, got)
		}
		got := f.works("resolve_reference_target", `{"kind":"`+c.kind+`"}`)
		if !strings.Contains(got, `"result":"resolved"`) || !strings.Contains(got, `"`+id+`"`) || !strings.Contains(got, "activated_by_resolver") {
			t.Errorf("%s: %s", c.event, got)
		}
		log := f.log.String()
		for _, line := range []string{`msg="context objects listed" request=`, `msg="context object activated" request=`, "reason=" + c.event + " ids=[" + id + "]", "chat=telegram:-1 topic=\"\" count=1 scope=reply_chain ids=[" + id + "] truncated=false", `msg="reference resolved"`} {
			if !strings.Contains(log, line) {
				t.Errorf("no %q in the log:\n%s", line, log)
			}
		}
	}
}

// An object of no message has no owner that is known.
func TestListActiveContextObjects_Owner_IsSaidWhereKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.works("activate_context_object", `{"event":"url_discussed","kind":"link","url":"https://example.org/tides"}`)
	if got := f.works("list_active_context_objects", `{}`); !strings.Contains(got, `"link:`) || strings.Contains(got, "owned_by_sender") {
		t.Error(got)
	}
	f.works("activate_context_object", `{"event":"followup_attached","kind":"bot_message","source_message_id":OWN_ANSWER}`)
	if got := f.works("list_active_context_objects", `{"allowed_kinds":["bot_message"]}`); !strings.Contains(got, `"owned_by_sender":false`) {
		t.Error(got)
	}
}

func TestActivateContextObject_WrongUse_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for arguments, want := range map[string]string{
		`{"event":"poll_created","kind":"poll","source_message_id":OWN_MESSAGE}`:        "event",
		`{"event":"media_inspected","kind":"article","source_message_id":OWN_MESSAGE}`:  "use one of",
		`{"event":"followup_attached","kind":"poll","source_message_id":OWN_MESSAGE}`:   "list it with its own tool",
		`{"event":"url_discussed","kind":"song","source_message_id":OWN_MESSAGE}`:       "kind must be one of article link",
		`{"event":"url_discussed","kind":"link","url":"javascript:alert(1)"}`:           "begins with http",
		`{"event":"media_inspected","kind":"media.image","url":"https://example.org/"}`: "give the source_message_id",
	} {
		f.refused("activate_context_object", arguments, want)
	}
	if got := f.works("list_active_context_objects", `{}`); !strings.Contains(got, `"objects":[]`) {
		t.Errorf("something is active: %s", got)
	}
	f.refused("list_active_context_objects", `{"allowed_kinds":["song"]}`, "allowed_kinds[] must be one of article link")
	f.refused("list_active_context_objects", `{"include_inactive_debug":true}`, "include_inactive_debug")
	if got := f.works("resolve_reference_target", `{}`); !strings.Contains(got, `"result":"not_found"`) {
		t.Errorf("resolved: %s", got)
	}
}

// An article and its summary are two objects, though both are by one URL.
func TestActivateContextObject_TwoKindsOfOneURL_AreTwoObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.works("activate_context_object", `{"event":"article_summarized","kind":"article","url":"https://example.org/a"}`)
	f.works("activate_context_object", `{"event":"summary_reused","kind":"summary","url":"https://example.org/a"}`)
	f.works("activate_context_object", `{"event":"summary_reused","kind":"summary","url":"https://example.org/a","label":"A"}`)
	list := f.works("list_active_context_objects", `{"allowed_kinds":["article","summary"]}`)
	if strings.Count(list, `"object_id"`) != 2 {
		t.Errorf("active: %s", list)
	}
}

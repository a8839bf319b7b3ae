package pages_test

import "arizuko/dashd/internal/pages"

func spendSamples() []sample {
	full := func(int64) any {
		page := pages.Spend{Whole: pages.SpendLine{Turns: 66, USD: 12.345}}
		for i, usd := range []float64{0, 0.004, 1.2, 0, 8.125, 3.016} {
			page.Days = append(page.Days, pages.SpendLine{Name: "2026-11-1" + string(rune('0'+i)), Turns: int64(11 * i), Input: 512_000, Output: 31_000, USD: usd})
		}
		page.Groups = []pages.SpendLine{{Name: "acme/eng", Turns: 60, Input: 512_000, Output: 31_000, USD: 12.3}, {Name: "main", Turns: 6, USD: 0.045}}
		page.Chats = []pages.SpendLine{{Name: "telegram:-1001234", Title: "Builds", Turns: 40, Input: 1, Output: 2, USD: 11}, {Name: "web:main", Turns: 26, USD: 1.3}}
		return page
	}
	hostile := func(text string) any {
		line := []pages.SpendLine{{Name: text, Title: text, Turns: 1, USD: 1}}
		return pages.Spend{Day: "2026-11-23", Folder: text, Days: []pages.SpendLine{{Name: "2026-11-23", Turns: 1, USD: 1}}, Groups: line, Chats: line}
	}
	return []sample{
		{"spend", "spend.html", "/spend", full, hostile},
		{"no-spend", "spend.html", "/spend", func(int64) any { return pages.Spend{Days: make([]pages.SpendLine, 30)} }, hostile},
	}
}

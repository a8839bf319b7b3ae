package pages_test

import (
	"fmt"

	"arizuko/dashd/internal/pages"
	factrows "arizuko/pkg/facts/rows"
)

func spendSamples() []sample {
	line := func(name string, turns int64, usd float64) factrows.SpendRow {
		return factrows.SpendRow{Name: name, Spend: factrows.Spend{Turns: turns, Input: 512_000, Output: 31_000, CostUSD: usd}}
	}
	full := func(int64) any {
		page := pages.Spend{Titles: pages.Titles{"telegram:-1001234": "Builds"}}
		for i, usd := range []float64{0, 0.004, 1.2, 0, 8.125, 3.016} {
			page.Days = append(page.Days, line(fmt.Sprintf("2026-11-1%d", i), int64(11*i), usd))
		}
		page.Groups = []factrows.SpendRow{line("acme/eng", 60, 12.3), line("main", 6, 0.045)}
		page.Chats = []factrows.SpendRow{line("telegram:-1001234", 40, 11), line("web:main", 26, 1.3)}
		return page
	}
	return []sample{
		{"spend", "spend.html", "/spend", full},
		{"no-spend", "spend.html", "/spend", func(int64) any { return pages.Spend{Days: make([]factrows.SpendRow, 30)} }},
	}
}

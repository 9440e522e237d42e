// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"strings"
	"unicode/utf8"

	"github.com/satchel-dev/satchel/internal/view"
)

// Cell is one field of a table.
type Cell struct {
	Text  string
	Color Color
}

// Table is a list of rows under headers. Widths are counted in characters, and colours are added after.
type Table struct {
	Headers []string
	Rows    [][]Cell
}

// columnGap lies between two columns, as kubectl has it.
const columnGap = 3

// Add appends a row of plain cells, made safe to show, and returns it, so that single cells can be coloured.
func (t *Table) Add(texts ...string) []Cell {
	row := make([]Cell, 0, len(texts))
	for _, text := range texts {
		row = append(row, Cell{Text: view.Inline(text)})
	}
	t.Rows = append(t.Rows, row)
	return row
}

// Render lays the table out.
func (t *Table) Render(s Style) string {
	widths := make([]int, len(t.Headers))
	for i, header := range t.Headers {
		widths[i] = utf8.RuneCountInString(header)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	var out strings.Builder
	header := make([]Cell, 0, len(t.Headers))
	for _, text := range t.Headers {
		header = append(header, Cell{Text: text, Color: Bold})
	}
	writeRow(&out, s, header, widths)
	for _, row := range t.Rows {
		writeRow(&out, s, row, widths)
	}
	return out.String()
}

func writeRow(out *strings.Builder, s Style, row []Cell, widths []int) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	for i, c := range row[:last+1] {
		out.WriteString(s.Paint(c.Color, c.Text))
		if i < last {
			out.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)+columnGap))
		}
	}
	out.WriteByte('\n')
}

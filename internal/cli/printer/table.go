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
	Headers   []string
	NoHeaders bool
	Rows      [][]Cell
	// Width is that of the terminal, where the last column is cut; 0 leaves it whole.
	Width int
}

// Cells are plain cells, made safe to show.
func Cells(texts ...string) []Cell {
	row := make([]Cell, 0, len(texts))
	for _, text := range texts {
		row = append(row, Cell{Text: view.Inline(text)})
	}
	return row
}

// columnGap lies between two columns, as kubectl has it.
const columnGap = 3

// Add appends a row of plain cells, made safe to show, and returns it, so that single cells can be coloured.
func (t *Table) Add(texts ...string) []Cell {
	row := Cells(texts...)
	t.Rows = append(t.Rows, row)
	return row
}

// Render lays the table out.
func (t *Table) Render(s Style) string {
	widths := t.widths()
	var out strings.Builder
	if !t.NoHeaders {
		header := make([]Cell, 0, len(t.Headers))
		for _, text := range t.Headers {
			header = append(header, Cell{Text: text, Color: Bold})
		}
		writeRow(&out, s, header, widths)
	}
	for _, row := range t.Rows {
		writeRow(&out, s, t.fitted(row, widths), widths)
	}
	return out.String()
}

// Line is a further row below the table, which is not kept.
func (t *Table) Line(s Style, row []Cell) string {
	widths := t.widths()
	var out strings.Builder
	writeRow(&out, s, t.fitted(row, widths), widths)
	return out.String()
}

// widths are those of the columns.
func (t *Table) widths() []int {
	widths := make([]int, len(t.Headers))
	for i, header := range t.Headers {
		widths[i] = utf8.RuneCountInString(header)
		for _, row := range t.Rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	return widths
}

// narrowestColumn is what the last column has at least, even if lines are broken then.
const narrowestColumn = 20

// fitted is a row with a last column that ends at the width of the terminal.
func (t *Table) fitted(row []Cell, widths []int) []Cell {
	if t.Width == 0 {
		return row
	}
	left := t.Width
	for _, width := range widths[:len(widths)-1] {
		left -= width + columnGap
	}
	left = max(left, narrowestColumn)
	last := len(row) - 1
	if utf8.RuneCountInString(row[last].Text) <= left {
		return row
	}
	cut := append([]Cell{}, row...)
	cut[last].Text = string([]rune(row[last].Text)[:left-1]) + "…"
	return cut
}

func writeRow(out *strings.Builder, s Style, row []Cell, widths []int) {
	last := len(row) - 1
	for last > 0 && row[last].Text == "" {
		last--
	}
	for i, c := range row[:last+1] {
		out.WriteString(s.Paint(c.Color, c.Text))
		if i < last {
			out.WriteString(strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(c.Text))+columnGap))
		}
	}
	out.WriteByte('\n')
}

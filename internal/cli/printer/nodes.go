// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Node is a line of a tree with further lines below it.
type Node struct {
	Text  string
	Below []Node
}

// Padding is the space between a name and what follows it in a column of the width.
func Padding(name string, width int) string {
	return strings.Repeat(" ", width-utf8.RuneCountInString(name)+2)
}

// WriteNodes draws a tree.
func WriteNodes(out *strings.Builder, nodes []Node, indent string) {
	for i, n := range nodes {
		branch, further := "├─ ", "│  "
		if i == len(nodes)-1 {
			branch, further = "└─ ", "   "
		}
		stem := "\n" + indent + further
		if len(n.Below) > 0 {
			stem += "│  "
		}
		fmt.Fprintf(out, "%s%s%s\n", indent, branch, strings.ReplaceAll(n.Text, "\n", stem))
		WriteNodes(out, n.Below, indent+further)
	}
}

// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/internal/view"
)

// PrintPendingDecision writes what is pending for people. Where the controller names the commands, they stand here only once.
func PrintPendingDecision(c *view.PendingDecision, out *strings.Builder, s Style) {
	if c == nil {
		return
	}
	fmt.Fprintf(out, "%s %s\n", s.Paint(Bold, "Approval:"), s.Paint(Yellow, view.Inline(c.Reason)))
	for line := range strings.SplitSeq(strings.TrimSpace(view.Printable(c.Message)), "\n") {
		if !strings.Contains(line, "satchel approve ") {
			fmt.Fprintf(out, "  %s\n", line)
		}
	}
	for _, line := range []struct{ what, command string }{{"see it    ", c.See}, {"approve it", c.Approve}, {"deny it   ", c.Deny}} {
		if line.command != "" {
			fmt.Fprintf(out, "  %s  %s\n", line.what, line.command)
		}
	}
}

// SummaryColor is that of the readiness.
func SummaryColor(s view.Summary) Color {
	switch s.Readiness() {
	case string(metav1.ConditionTrue):
		return Green
	case string(metav1.ConditionFalse):
		return Red
	}
	return Yellow
}

// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatusTime is a time as a status holds it, in seconds.
func StatusTime(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// JoinNames lists things by their names, for messages.
func JoinNames[T fmt.Stringer](things []T) string {
	words := make([]string, 0, len(things))
	for _, thing := range things {
		words = append(words, thing.String())
	}
	return strings.Join(words, ", ")
}

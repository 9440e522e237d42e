// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"os"
	"strings"
	"testing"
	"time"
)

// words for the years of a life, and for what its first two thirds are in months.
var words = map[time.Duration]string{2 * year: "two", 3 * year: "three", 10 * year: "ten", 16 * year / 12: "sixteen"}

// TestLivesAreDocumented: the guide, the decision and this package say the same as the constants.
func TestLivesAreDocumented(t *testing.T) {
	authority, serving, left := words[AuthorityLife]+" years", words[ServingLife]+" years", words[Succession]+" years"
	for path, sentences := range map[string][]string{
		"../../../docs/registryv1.md": {
			"A serving certificate is valid for " + serving + " and renewed after " + words[ServingLife/3*2] + " months",
			"authority is valid for " + authority + " and gets a successor " + left + " before it expires",
		},
		"../../../docs/adr/0006-self-signed-certificates.md": {
			"An authority lives " + authority, "A serving certificate lives " + serving, strings.ToUpper(left[:1]) + left[1:] + " before it ends it gets a successor",
		},
		"doc.go": {"An authority lives " + authority + ", a serving certificate " + words[ServingLife], "When an authority has " + left + " left"},
	} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(strings.ReplaceAll(string(raw), "\n//", "\n")), " ")
		for _, sentence := range sentences {
			if !strings.Contains(text, sentence) {
				t.Errorf("%s does not say %q", path, sentence)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces values that may be secret.
const Redacted = "REDACTED"

// secretTexts are patterns of secrets in any string: messages, logs, URLs.
var secretTexts = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), Redacted},
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'<>@]+@`), "${1}" + Redacted + "@"},
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s"'<>?#\\]+)\?[^\s"'<>\\]+`), "${1}?" + Redacted},
	{regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)\s+[A-Za-z0-9+/=_.~-]{6,}`), "${1} " + Redacted},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*(\.[A-Za-z0-9_-]*)?`), Redacted},
	{regexp.MustCompile(`\b(gh[a-z]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}|(AKIA|ASIA)[A-Z0-9]{12,}|xox[a-z]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,})`), Redacted},
	{regexp.MustCompile(`(?i)((?:pass(?:word|wd|phrase)?|token|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|authorization|identity)["'\\]*\s*[=:]\s*["'\\]*)[^\s"',;&}{\\]+`), "${1}" + Redacted},
}

// RedactText replaces parts of a string that look like secrets.
func RedactText(text string) string {
	for _, s := range secretTexts {
		text = s.pattern.ReplaceAllString(text, s.with)
	}
	return text
}

// openAnnotations are prefixes of annotations with values of known meaning. Of other annotations only the names are kept.
var openAnnotations = []string{
	"satchel.dev/", "reconcile.fluxcd.io/", "kubectl.kubernetes.io/default-container", "deployment.kubernetes.io/", "kubernetes.io/",
	"argocd.argoproj.io/tracking-id", "sharding.fluxcd.io/",
}

// closedFields are fields of specs with free-form values, which may be secrets: only the names of the fields below are kept.
var closedFields = []string{"values", "patch", "data", "stringData", "binaryData", "env", "tls", "caBundle"}

// RedactObject removes values from an object that may be secret, and fields that only the API server needs. It changes the
// object.
func RedactObject(object map[string]any) {
	if metadata, _ := object["metadata"].(map[string]any); metadata != nil {
		delete(metadata, "managedFields")
	}
	for key, value := range object {
		object[key] = redactValue(value)
	}
}

// redactValue redacts all strings below a value.
func redactValue(value any) any {
	switch value := value.(type) {
	case string:
		return RedactText(value)
	case []any:
		for i := range value {
			value[i] = redactValue(value[i])
			if i > 0 && isSecretFlag(value[i-1]) {
				value[i] = Redacted
			}
		}
	case map[string]any:
		for key, item := range value {
			switch annotations, isMap := item.(map[string]any); {
			case slices.Contains(closedFields, key):
				value[key] = closeValue(item)
			case key == "annotations" && isMap:
				redactAnnotations(annotations)
			default:
				value[key] = redactValue(item)
			}
		}
	}
	return value
}

// redactAnnotations keeps the names of annotations, and the values of those that are known.
func redactAnnotations(annotations map[string]any) {
	for key, value := range annotations {
		if !slices.ContainsFunc(openAnnotations, func(begin string) bool { return strings.HasPrefix(key, begin) }) {
			annotations[key] = Redacted
			continue
		}
		annotations[key] = redactValue(value)
	}
}

// closeValue keeps the names of fields, and of environment variables, and none of their values.
func closeValue(value any) any {
	switch value := value.(type) {
	case nil, bool:
		return value
	case []any:
		for i := range value {
			value[i] = closeValue(value[i])
		}
		return value
	case map[string]any:
		for key, item := range value {
			if name, isText := item.(string); !isText || key != "name" && key != "key" && key != "fieldPath" {
				value[key] = closeValue(item)
			} else {
				value[key] = RedactText(name)
			}
		}
		return value
	}
	return Redacted
}

// secretFlag is a flag of a program that may have a secret value in the next argument.
var secretFlag = regexp.MustCompile(`(?i)^--?[a-z0-9-]*(pass|token|secret|key|credential|authorization)[a-z0-9-]*$`)

func isSecretFlag(argument any) bool {
	text, isText := argument.(string)
	return isText && secretFlag.MatchString(text)
}

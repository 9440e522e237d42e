// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/migrate"
)

// printMigration writes the objects with their comments, all or nothing.
func (a *app) printMigration(format output, result migrate.Result) error {
	var out bytes.Buffer
	var items []any
	notes, made := 0, 0
	for _, item := range result.Items {
		notes += len(item.Notes)
		out.WriteString("---\n")
		for _, line := range a.comments(item) {
			out.WriteString("# " + line + "\n")
		}
		for i, object := range item.Objects {
			made++
			plain, err := plainOf(object)
			if err != nil {
				return err
			}
			items = append(items, plain)
			text, err := yamlText(plain)
			if err != nil {
				return fmt.Errorf("writing the manifests: %w", err)
			}
			if i > 0 {
				out.WriteString("---\n")
			}
			out.Write(text)
		}
	}
	if format == outputJSON {
		for _, item := range result.Items {
			for _, note := range item.Notes {
				a.note([]string{item.From + ": " + note})
			}
		}
		return printValue(a.streams.Out, format, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
	}
	if _, err := a.streams.Out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	fmt.Fprintf(a.streams.ErrOut, "Migrated %s. The comments hold %s: read them before you apply it.\n", plural(made, "object"), plural(notes, "note"))
	return nil
}

// comments are written above the translation of an object.
func (a *app) comments(item migrate.Item) []string {
	lines := []string{"From " + inline(item.From) + "."}
	for _, note := range item.Notes {
		var text strings.Builder
		writeWrapped(&text, inline(note), "- ", "  ", commentWidth)
		lines = append(lines, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	}
	if item.RBAC != nil {
		lines = append(lines, "The ServiceAccount and its RBAC, which an administrator reads before applying them:",
			"  "+a.rbacFor(*item.RBAC)+" | kubectl apply -f -")
	}
	if item.Adopts && item.RBAC != nil {
		lines = append(lines, "Then, where it is installed already, show what would be taken over, and take it over:",
			fmt.Sprintf("  %s adopt %s -n %s --dry-run", a.name, item.RBAC.Name, item.RBAC.Namespace))
	}
	return lines
}

// commentWidth is how wide notes become.
const commentWidth = 118

// rbacFor is the command that prints the RBAC of a deployment.
func (a *app) rbacFor(r migrate.RBAC) string {
	bundle := r.Bundle
	if bundle == "" {
		bundle = "./FOLDER-OF-THE-BUNDLE"
	}
	words := []string{a.name, "rbac", shellWord(bundle), "--install-namespace", shellWord(r.InstallNamespace),
		"--namespace", shellWord(r.Namespace), "--name", shellWord(r.Name), "--service-account", shellWord(r.Account)}
	if r.Format != "" {
		words = append(words, "--format", r.Format)
	}
	if r.Path != "" {
		words = append(words, "--path", shellWord(r.Path))
	}
	for _, namespace := range r.WatchNamespaces {
		words = append(words, "--watch-namespace", shellWord(namespace))
	}
	if r.CertificateProvider != "" {
		words = append(words, "--certificate-provider", shellWord(r.CertificateProvider))
	}
	return strings.Join(words, " ")
}

// plainOf is an object as people write it: without a status, and without what is empty.
func plainOf(object any) (map[string]any, error) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("writing the manifests: %w", err)
	}
	var plain map[string]any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		return nil, fmt.Errorf("writing the manifests: %w", err)
	}
	delete(plain, "status")
	if metadata, ok := plain["metadata"].(map[string]any); ok {
		delete(metadata, "creationTimestamp")
	}
	if sources, ok := nested(plain, "spec", "sources"); ok {
		withoutRoot(sources)
	}
	if sources, ok := nested(plain, "spec", "source", "sources"); ok {
		withoutRoot(sources)
	}
	if plain["kind"] == v1alpha1.BundleDeploymentKind {
		if spec, ok := plain["spec"].(map[string]any); ok && isEmpty(spec["registryV1"]) {
			delete(spec, "registryV1")
		}
	}
	return plain, nil
}

// nested is a list below some fields.
func nested(object map[string]any, path ...string) ([]any, bool) {
	var at any = object
	for _, key := range path {
		fields, ok := at.(map[string]any)
		if !ok {
			return nil, false
		}
		at = fields[key]
	}
	list, ok := at.([]any)
	return list, ok
}

// withoutRoot leaves the destination of a single source out, which is the root.
func withoutRoot(sources []any) {
	for _, source := range sources {
		if fields, ok := source.(map[string]any); ok && fields["destination"] == "" {
			delete(fields, "destination")
		}
	}
}

func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	return ok && len(fields) == 0
}

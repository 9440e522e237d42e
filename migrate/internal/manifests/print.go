// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/migrate/internal/translate"
)

// printMigration writes the objects with their comments, all or nothing.
func printMigration(a *kit.App, format printer.Output, result translate.Result) error {
	var out bytes.Buffer
	var items []any
	notes, made := 0, 0
	for _, item := range result.Items {
		notes += len(item.Notes)
		out.WriteString("---\n")
		for _, line := range comments(a, item) {
			out.WriteString("# " + line + "\n")
		}
		for i, object := range item.Objects {
			made++
			plain, err := printer.PlainOf(object)
			if err != nil {
				return err
			}
			items = append(items, plain)
			text, err := printer.YamlText(plain)
			if err != nil {
				return fmt.Errorf("writing the manifests: %w", err)
			}
			if i > 0 {
				out.WriteString("---\n")
			}
			out.Write(text)
		}
	}
	if format == printer.OutputJSON {
		for _, item := range result.Items {
			for _, note := range item.Notes {
				a.Note([]string{item.From + ": " + note})
			}
		}
		return printer.PrintValue(a.Streams.Out, format, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
	}
	if _, err := a.Streams.Out.Write(out.Bytes()); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	fmt.Fprintf(a.Streams.ErrOut, "Migrated %s. The comments contain %s: read them before you apply the manifests.\n", view.Plural(made, "object"), view.Plural(notes, "note"))
	return nil
}

// comments are written above the translation of an object.
func comments(a *kit.App, item translate.Item) []string {
	lines := []string{"From " + view.Inline(item.From) + "."}
	for _, note := range item.Notes {
		var text strings.Builder
		printer.WriteWrapped(&text, view.Inline(note), "- ", "  ", commentWidth)
		lines = append(lines, strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")...)
	}
	if item.RBAC != nil {
		lines = append(lines, "The ServiceAccount and its RBAC; review them before you apply them:",
			"  "+rbacFor(a, *item.RBAC)+" | kubectl apply -f -")
	}
	if item.Adopts && item.RBAC != nil {
		lines = append(lines, "Then, if it is installed already, adopt its objects; first show what would be adopted:",
			fmt.Sprintf("  kubectl satchel-migrate adopt %s -n %s --dry-run", item.RBAC.Name, item.RBAC.Namespace))
	}
	return lines
}

// commentWidth is how wide notes become.
const commentWidth = 118

// rbacFor is the command that prints the RBAC of a deployment.
func rbacFor(a *kit.App, r translate.RBAC) string {
	bundle := r.Bundle
	if bundle == "" {
		bundle = "./FOLDER-OF-THE-BUNDLE"
	}
	words := []string{a.Name, "rbac", view.ShellWord(bundle), "--install-namespace", view.ShellWord(r.InstallNamespace),
		"--namespace", view.ShellWord(r.Namespace), "--name", view.ShellWord(r.Name), "--service-account", view.ShellWord(r.Account)}
	if r.Format != "" {
		words = append(words, "--format", r.Format)
	}
	if r.Path != "" {
		words = append(words, "--path", view.ShellWord(r.Path))
	}
	for _, namespace := range r.WatchNamespaces {
		words = append(words, "--watch-namespace", view.ShellWord(namespace))
	}
	if r.CertificateProvider != "" {
		words = append(words, "--certificate-provider", view.ShellWord(r.CertificateProvider))
	}
	return strings.Join(words, " ")
}

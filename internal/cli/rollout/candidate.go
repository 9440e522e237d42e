// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/artifact"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/rollout/revision"
)

// mostOfFile bounds a manifest.
const mostOfFile = 4 << 20

// choice are the flags that choose a revision.
type choice struct {
	revision string
	file     string
}

func (o *choice) flags(a *kit.App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.revision, "revision", "", "Name of a revision of rollout history.")
	a.CompleteFlag(cmd, "revision", completeRevisions(a))
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "Manifest of the BundleRollout instead of what the cluster has; - for standard input.")
	cmd.MarkFlagsMutuallyExclusive("revision", "file")
}

// completeRevisions completes the revisions of the named rollout.
func completeRevisions(a *kit.App) kit.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), kit.CompletionTimeout)
		defer cancel()
		c, err := a.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		o, err := c.Rollout(ctx, kit.Target{Kind: kit.Rollouts, Name: args[0]})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []string
		for i := range o.Status.History {
			words = append(words, o.Status.History[i].Name)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// candidate is a revision that a run would have.
type candidate struct {
	// object is the rollout, with the spec of the file where one was given, and the status of the cluster.
	object *v1alpha1.BundleRollout
	data   revision.Data
	// name and digest are empty where only the controller can compute them: copies of shared inputs count in them.
	name, digest string
	version      string
	// known is the revision that the waves have now; nil if there is none.
	known *revision.Data
	// isKnown tells that the candidate is that revision.
	isKnown bool
}

// candidate finds the revision that the flags choose. Without them it is the one that the waves have, or get next.
func (r *reader) candidate(ctx context.Context, a *kit.App, o choice, t kit.Target) (*candidate, error) {
	object, err := r.object(ctx, a, o, t)
	if err != nil {
		return nil, err
	}
	found := &candidate{object: object}
	update := object.Status.UpdateRevision
	if update != nil {
		known, _, err := r.stored(ctx, object.Name, update.Name)
		if err != nil {
			return nil, err
		}
		found.known = &known
	}
	wanted := o.revision
	if wanted == "" && o.file == "" {
		wanted = object.Spec.Revision
	}
	if wanted != "" {
		found.data, found.digest, err = r.stored(ctx, object.Name, wanted)
		found.name = wanted
		found.isKnown = update != nil && update.Name == wanted
		found.version = versionOf(object, wanted)
		return found, err
	}
	return found, r.newest(ctx, found)
}

// versionOf is the version of a revision that the status knows.
func versionOf(o *v1alpha1.BundleRollout, name string) string {
	for _, known := range []*v1alpha1.RolloutRevision{o.Status.UpdateRevision, o.Status.CurrentRevision} {
		if known != nil && known.Name == name {
			return known.Revision
		}
	}
	for i := range o.Status.History {
		if o.Status.History[i].Name == name {
			return o.Status.History[i].Revision
		}
	}
	return ""
}

// newest is the revision of what the source publishes and the spec says.
func (r *reader) newest(ctx context.Context, found *candidate) error {
	spec := &found.object.Spec
	source, err := r.source(ctx, spec.SourceRef.Name)
	if err != nil {
		return err
	}
	found.version = source.Status.OriginRevision
	if found.version == "" {
		found.version = source.Status.Artifact.Revision
	}
	found.data = revision.Data{
		Content: artifact.Identity(source.Status.Artifact.Revision), Ignore: source.Spec.Ignore,
		Template: spec.Template, Variables: spec.Variables, Overrides: spec.Overrides,
	}
	if found.known != nil {
		same := *found.known
		same.Inputs = nil
		same.Sources = nil
		if canonical(same) == canonical(found.data) {
			update := found.object.Status.UpdateRevision
			found.data = *found.known
			found.isKnown = true
			found.name = update.Name
			found.digest = update.Digest
			return nil
		}
	}
	if len(revision.SharedInputs(spec)) > 0 {
		return nil // their content counts in the digest, and the controller copies it
	}
	found.digest, err = found.data.Digest()
	found.name = revision.Name(found.digest)
	return err
}

// canonical is a revision by its digest, so that the order of fields does not count.
func canonical(data revision.Data) string {
	digest, err := data.Digest()
	if err != nil {
		return ""
	}
	return digest
}

// source reads the source of a rollout, which has to have published something.
func (r *reader) source(ctx context.Context, name string) (*v1alpha1.BundleSource, error) {
	found, err := r.Get(ctx, kit.Target{Kind: kit.Sources, Name: name})
	if err != nil {
		return nil, fmt.Errorf("spec.sourceRef: %w", err)
	}
	source, isSource := found.(*v1alpha1.BundleSource)
	if !isSource || source.Status.Artifact == nil {
		return nil, fmt.Errorf("the BundleSource %s of spec.sourceRef has published nothing yet: status source %s says why", name, name)
	}
	return source, nil
}

// object is the rollout of the cluster, or that of the file with the status of the cluster.
func (r *reader) object(ctx context.Context, a *kit.App, o choice, t kit.Target) (*v1alpha1.BundleRollout, error) {
	if o.file == "" {
		return r.Rollout(ctx, t)
	}
	object, err := readFile(a, o.file, t.Name)
	if err != nil {
		return nil, err
	}
	if object.Namespace != "" && object.Namespace != r.Namespace {
		return nil, fmt.Errorf("%s in %s is of the namespace %q: choose it with -n", t, o.file, object.Namespace)
	}
	object.Namespace = r.Namespace
	var missing *kit.NotFoundError
	live, err := r.Rollout(ctx, t)
	switch {
	case errors.As(err, &missing):
		return object, nil // it would be created
	case err != nil:
		return nil, err
	}
	object.Status = live.Status
	return object, nil
}

// readFile reads the BundleRollout of a name from a file, which may hold other documents.
func readFile(a *kit.App, file, name string) (*v1alpha1.BundleRollout, error) {
	from, text, err := kit.ReadFile("-f", file, a.Streams.In, mostOfFile)
	if err != nil {
		return nil, err
	}
	documents := documentsOf(text)
	for {
		document, err := documents()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s holds no %s %q", from, v1alpha1.BundleRolloutKind, name)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", from, err)
		}
		var object v1alpha1.BundleRollout
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, fmt.Errorf("reading %s: %w", from, err)
		}
		if head.Kind != v1alpha1.BundleRolloutKind || head.Metadata.Name != name {
			continue
		}
		if err := yaml.UnmarshalStrict(document, &object); err != nil {
			return nil, fmt.Errorf("%s %q in %s: %w", v1alpha1.BundleRolloutKind, name, from, err)
		}
		return &object, nil
	}
}

// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/digest"
	"github.com/satchel-dev/satchel/internal/artifact/loader"
	"github.com/satchel-dev/satchel/internal/controller/deployment/certificates"
	"github.com/satchel-dev/satchel/internal/controller/deployment/failure"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/controller/pipeline"
	"github.com/satchel-dev/satchel/internal/fetch/links"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// Stage is what rendering needs beside its input.
type Stage struct {
	Renderer  *Renderer
	Artifacts *loader.Loader
	Entropy   io.Reader // the source of randomness for keys
}

// Input is what rendering reads: the results of the earlier stages. It writes Rendered.
type Input struct {
	*stage.Subject
	Listed   *stage.Listing
	Resolved *stage.Resolved
	Rendered *stage.Rendered
}

// Load fetches the artifact, from the cache if it is there.
func (st *Stage) Load(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due {
		return pipeline.Continue, nil
	}
	in.Object.Status.Attempted.Revision = in.Resolved.Artifact.Revision
	ctx, cancel := context.WithTimeout(ctx, longestLoad)
	defer cancel()
	content, err := st.Artifacts.Load(ctx, in.Resolved.Source.Owner, *in.Resolved.Artifact)
	if err != nil {
		return pipeline.Stop, failure.Error{Reason: v1alpha1.ReasonArtifactFailed, Err: err}
	}
	in.Rendered.Unpacked = content
	in.Rendered.Bundle.LeftOut = content.LeftOut()
	return pipeline.Continue, nil
}

// longestLoad bounds loading and unpacking one artifact, so that a stalled artifact
// server does not block a worker for long.
const longestLoad = 2 * time.Minute

// Convert turns the files into objects, in a worker process.
func (st *Stage) Convert(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due {
		return pipeline.Continue, nil
	}
	given := spec.Given{Contents: in.Resolved.Inputs.Contents, Values: in.Resolved.Inputs.Values}
	converted, err := st.converted(ctx, in, given)
	if err != nil {
		return pipeline.Stop, err
	}
	if in.Rendered.Release, err = st.Renderer.Hold(in.Object, converted.Values); err != nil {
		return pipeline.Stop, err
	}
	result, err := converted.Result()
	if err != nil {
		return pipeline.Stop, err
	}
	in.Rendered.Desired, in.Rendered.Hooks = result.Objects, spec.Hooks(result)
	in.Rendered.PlanDigests.Content = converted.Content
	if err := st.digestMaterial(in); err != nil {
		return pipeline.Stop, err
	}
	if asked := converted.Capabilities; asked != nil {
		in.Rendered.Capabilities = spec.Capabilities(*asked)
	}
	in.Rendered.Ranks = spec.Ranks(result)
	in.Rendered.Wanted, in.Rendered.Requires = result.Certificates, result.Requirements
	in.Rendered.Contains, in.Rendered.Version = result.Package, result.Version
	in.Rendered.Describe(result)
	in.Rendered.Warnings = slices.Concat(converted.Warnings, result.Warnings, links.Warnings(in.Rendered.Bundle.LeftOut))
	in.Object.Status.Format = v1alpha1.Format(result.Format)
	in.Rendered.Converted = true
	return pipeline.Continue, nil
}

// Certify reads the certificates that the objects mount and trust, and issues in memory
// those that are missing or due. Nothing is written before the plan is executed.
func (st *Stage) Certify(ctx context.Context, in *Input) (pipeline.Outcome, error) {
	if !in.Resolved.Due || len(in.Rendered.Wanted) == 0 {
		return pipeline.Continue, nil
	}
	made, err := certificates.Input{
		Client: in.Resolved.Access.Client, Owner: in.Owner, Home: in.Home, Listed: in.Listed.Inventory(), HashKey: in.HashKey,
		Desired: in.Rendered.Desired, Wanted: in.Rendered.Wanted, Now: in.Now, Entropy: st.Entropy,
	}.Prepare(ctx)
	if err != nil {
		return pipeline.Stop, err
	}
	in.Rendered.Issued = made
	return pipeline.Continue, nil
}

// conversionInput identifies everything that the conversion depends on, except the cluster.
func (in *Input) conversionInput() string {
	a := in.Resolved.Attempt(in.Subject)
	return fmt.Sprintf("%s %d %q %q %q", in.Object.UID, a.Generation, a.Revision, a.Digest, a.Inputs)
}

// converted converts the bundle in a worker process, or returns an earlier result.
func (st *Stage) converted(ctx context.Context, in *Input, given spec.Given) (*jobs.Converted, error) {
	revision := Revision{
		Object: in.Object, About: in.conversionInput(), Revision: in.Resolved.Revision(), Content: in.Rendered.Unpacked, Given: given,
		Client: in.Resolved.Access.Client, First: in.Listed.Current().Len() == 0,
	}
	if err := st.Renderer.Refused(revision); err != nil {
		return nil, err
	}
	in.Rendered.Unpacked = nil // closed at the end of the conversion
	return st.Renderer.Convert(ctx, revision)
}

// digestMaterial digests the converted objects with their Secrets. The worker process, which does not know the key,
// digested the content.
func (st *Stage) digestMaterial(in *Input) (err error) {
	all := slices.Concat(in.Rendered.Desired, plan.Rendered(in.Rendered.Hooks))
	in.Rendered.PlanDigests.Material, err = digest.Material(in.Rendered.PlanDigests.Content, in.Resolved.Inputs.Digest, all, in.HashKey)
	return err
}

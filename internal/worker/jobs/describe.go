// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"

	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/convert/helm"
	"github.com/satchel-dev/satchel/internal/fetch/packed"
	"github.com/satchel-dev/satchel/internal/worker/child"
)

type describeRequest struct {
	Index   []packed.Entry
	Options convert.Options
}

type describeAnswer struct {
	Refused refusal
	Chart   helm.Description
}

// DescribeChart is convert.DescribeChart in a worker process.
func DescribeChart(ctx context.Context, runner Runner, namespace string, files Files, o convert.Options) (helm.Description, error) {
	var answer describeAnswer
	if err := Run(ctx, runner, namespace, describeKind, files.File, describeRequest{Index: files.Index, Options: o}, &answer); err != nil {
		return helm.Description{}, err
	}
	return answer.Chart, answer.Refused.err()
}

// describeChart is the job.
func describeChart(in child.Input) ([]byte, error) {
	return Handle(in, func(request describeRequest) (describeAnswer, error) {
		files, err := packed.New(in.File, request.Index)
		if err != nil {
			return describeAnswer{}, err
		}
		described, err := convert.DescribeChart(files, request.Options)
		problems, err := refused(err)
		return describeAnswer{Refused: problems, Chart: described}, err
	})
}

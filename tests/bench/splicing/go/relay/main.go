// The reference: the usual relay with grpc-go and the generated types, which decodes and encodes every message.
//
//	relay UPSTREAM.sock OWN.sock
package main

import (
	"context"
	"log"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const maxMessage = 16 << 20

type relay struct {
	cri.UnimplementedRuntimeServiceServer
	upstream cri.RuntimeServiceClient
}

func (r relay) Version(ctx context.Context, in *cri.VersionRequest) (*cri.VersionResponse, error) {
	return r.upstream.Version(ctx, in)
}

func (r relay) Status(ctx context.Context, in *cri.StatusRequest) (*cri.StatusResponse, error) {
	return r.upstream.Status(ctx, in)
}

func (r relay) ListContainers(ctx context.Context, in *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	return r.upstream.ListContainers(ctx, in)
}

func (r relay) ListPodSandbox(ctx context.Context, in *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	return r.upstream.ListPodSandbox(ctx, in)
}

func (r relay) CreateContainer(ctx context.Context, in *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	return r.upstream.CreateContainer(ctx, in)
}

func main() {
	upstream, err := grpc.NewClient("unix://"+os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	cri.RegisterRuntimeServiceServer(server, relay{upstream: cri.NewRuntimeServiceClient(upstream)})
	log.Fatal(server.Serve(listener))
}

//! A transport that ignores all messages before the first request. A client may cancel something before it initializes the
//! server, and that notification must not end the server.

use rmcp::RoleServer;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use std::future::Future;

/// A transport that drops messages until the first request.
pub(crate) struct SkipUntilFirstRequestTransport<T> {
    inner: T,
    has_received_request: bool,
}

impl<T> SkipUntilFirstRequestTransport<T> {
    pub(crate) fn new(inner: T) -> SkipUntilFirstRequestTransport<T> {
        SkipUntilFirstRequestTransport { inner, has_received_request: false }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for SkipUntilFirstRequestTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.inner.receive().await?;
            self.has_received_request |= matches!(message, JsonRpcMessage::Request(_));
            if self.has_received_request {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.inner.close().await
    }
}

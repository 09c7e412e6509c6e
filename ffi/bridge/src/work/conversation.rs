//! Conversations and their store (SPEC 7.7).

use crate::dispatch::Context;
use crate::ops::{
    ConversationCreate, ConversationNumber, ConversationSend, Empty, MaybeTranscript, Messages,
    StoreGet, StoreSave,
};
use toolspan::{Error, RunResult, Transcript};

pub(crate) fn create(
    context: &Context,
    args: ConversationCreate,
) -> Result<ConversationNumber, Error> {
    let shared = &context.shared;
    let mut conversation = shared.clients.get(args.client)?.conversation();
    if let Some(id) = args.id {
        conversation = conversation.id(id);
    }
    if let Some(number) = args.toolkit {
        conversation = conversation.toolkit(&shared.toolkits.get(number)?);
    }
    Ok(ConversationNumber {
        conversation: shared.conversations.insert(conversation)?,
    })
}

pub(crate) fn close(context: &Context, args: ConversationNumber) -> Result<Empty, Error> {
    context
        .shared
        .conversations
        .remove_once(args.conversation)?;
    Ok(Empty {})
}

pub(crate) async fn send(context: Context, args: ConversationSend) -> Result<RunResult, Error> {
    let conversation = context.shared.conversations.get(args.conversation)?;
    conversation.send(args.prompt).cancel(context.stop()).await
}

pub(crate) async fn messages(
    context: Context,
    args: ConversationNumber,
) -> Result<Messages, Error> {
    let conversation = context.shared.conversations.get(args.conversation)?;
    Ok(Messages {
        messages: conversation.messages().await?,
    })
}

pub(crate) async fn reset(context: Context, args: ConversationNumber) -> Result<Empty, Error> {
    let conversation = context.shared.conversations.get(args.conversation)?;
    conversation.reset().await?;
    Ok(Empty {})
}

pub(crate) async fn get(context: Context, args: StoreGet) -> Result<MaybeTranscript, Error> {
    let store = context
        .shared
        .clients
        .get(args.client)?
        .conversation_store();
    Ok(MaybeTranscript {
        transcript: store.get(&args.id).await?,
    })
}

pub(crate) async fn save(context: Context, args: StoreSave) -> Result<Empty, Error> {
    let store = context
        .shared
        .clients
        .get(args.client)?
        .conversation_store();
    let transcript = Transcript::from_json(args.messages.get())
        .map_err(|e| Error::argument("messages", e.record().message.clone()))?;
    store.save(&args.id, transcript).await?;
    Ok(Empty {})
}

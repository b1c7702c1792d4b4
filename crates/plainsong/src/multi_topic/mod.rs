//! Multi-topics (DCPS 1.4 §2.2.2.3.4, Annex B): one typed view of several topics, joined on their keys.
//!
//! `SELECT flight, x, z AS height FROM Location NATURAL JOIN FlightPlan WHERE height < %0` gives a sample
//! whenever one of the topics does, for every combination of instances whose common key members are equal,
//! out of the last sample of each. Members of the result are filled by name; of a name that several topics
//! have, the first in FROM counts. WHERE is about the members of the result. Members are numbers, booleans,
//! characters, strings and enumerations, also those inside of structures (`pose.x AS x`).
//!
//! Limits: 8 topics, [`ROWS_MAX`] instances of each, [`COMBINATIONS_MAX`] combinations and [`SAMPLES_MAX`]
//! samples not taken. What goes beyond is dropped and counted.

mod join;
mod reader;

use std::any::Any;
use std::sync::{Arc, PoisonError, RwLock};

use plainsong_proto::cdr::{DdsType, FieldKind, FieldPath, Fields};
use plainsong_proto::filter::{Column, Filter, TopicExpression};
use plainsong_proto::qos::QosSet;

use crate::content_filtered_topic::refused;
use crate::error::{BadParameter, Result};
use crate::participant::ParticipantInner;
use crate::subscriber::Subscriber;
use crate::topic::Topic;
use crate::topic_description::Derived;
pub use join::{COMBINATIONS_MAX, ROWS_MAX, SAMPLES_MAX};
use join::{Fill, Plan};
pub use reader::MultiTopicReader;
use reader::{Source, TypedSource};

/// A view of several topics with samples of type `T`. Clones are the same multi-topic.
pub struct MultiTopic<T> {
    inner: Arc<Inner<T>>,
}

struct Inner<T> {
    name: String,
    expression: String,
    parsed: TopicExpression,
    constituents: Vec<Constituent>,
    plan: Arc<Plan>,
    condition: Arc<Condition<T>>,
}

/// What WHERE says, with the parameters of the moment.
pub(crate) struct Condition<T>(RwLock<Bound<T>>);

struct Bound<T> {
    parameters: Vec<String>,
    filter: Option<Arc<Filter<T>>>,
}

/// One of the topics that a multi-topic joins.
#[derive(Clone)]
pub struct Constituent {
    name: String,
    fields: Fields,
    participant: Arc<ParticipantInner>,
    read: Arc<CreateSource>,
}

type CreateSource = dyn Fn(&Subscriber, QosSet) -> Result<Box<dyn Source>> + Send + Sync;

impl<T: DdsType> From<&Topic<T>> for Constituent {
    fn from(topic: &Topic<T>) -> Self {
        let (name, participant) = (topic.name().to_owned(), Arc::clone(&topic.inner.participant));
        let topic = topic.clone();
        let read = move |subscriber: &Subscriber, qos: QosSet| {
            let source: Box<dyn Source> = Box::new(TypedSource(subscriber.create_reader(&topic, qos)?));
            Ok(source)
        };
        Self { name, fields: T::fields(), participant, read: Arc::new(read) }
    }
}

impl Constituent {
    /// The member of this name, if there is one that can be compared.
    fn find(&self, name: &str) -> Option<(FieldPath, FieldKind<'static>)> {
        FieldPath::find_in(self.fields, name).ok()
    }

    fn keys(&self) -> impl Iterator<Item = &'static str> {
        let members = if let Fields::Structure(_, members) = self.fields { members } else { &[] };
        members.iter().filter(|member| member.key).map(|member| member.name)
    }
}

impl<T: DdsType> MultiTopic<T> {
    pub(crate) fn new(
        participant: &Arc<ParticipantInner>,
        name: &str,
        expression: &str,
        parameters: Vec<String>,
        constituents: &[Constituent],
    ) -> Result<Self> {
        let what = || format!("the multi-topic '{name}'");
        BadParameter::check_name("multi-topic", name, 1)?;
        let parsed =
            TopicExpression::parse(expression).map_err(|error| refused(&what(), expression, error))?;
        let constituents = in_order(&parsed, constituents, participant)
            .map_err(|reason| BadParameter::MultiTopic { name: name.to_owned(), reason })?;
        let plan = fills::<T>(&parsed, &constituents)
            .and_then(|fills| Plan::new(fills, &constituents))
            .map_err(|reason| BadParameter::MultiTopic { name: name.to_owned(), reason })?;
        let bound = bind(&parsed, name, expression, parameters)?;
        let inner = Inner {
            name: name.to_owned(),
            expression: expression.to_owned(),
            parsed,
            constituents,
            plan: Arc::new(plan),
            condition: Arc::new(Condition(RwLock::new(bound))),
        };
        let inner = Arc::new(inner);
        participant.name_derived_topic(Arc::clone(&inner) as Arc<dyn Derived>)?;
        Ok(Self { inner })
    }

    pub(crate) fn from_any(any: Arc<dyn Any + Send + Sync>) -> Option<Self> {
        any.downcast().ok().map(|inner| Self { inner })
    }

    /// Its name. Nothing of it is announced: other participants see readers of the topics.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The expression.
    #[must_use]
    pub fn subscription_expression(&self) -> &str {
        &self.inner.expression
    }

    /// The values of %0, %1, ….
    #[must_use]
    pub fn expression_parameters(&self) -> Vec<String> {
        self.inner.condition.look(|bound| bound.parameters.clone())
    }

    /// Replaces the values of %0, %1, …: for what arrives from now on.
    ///
    /// # Errors
    /// [`crate::Error::BadParameter`] when a value is missing or of the wrong kind; then nothing changed.
    pub fn set_expression_parameters(&self, parameters: Vec<String>) -> Result<()> {
        let bound = bind(&self.inner.parsed, &self.inner.name, &self.inner.expression, parameters)?;
        *self.inner.condition.0.write().unwrap_or_else(PoisonError::into_inner) = bound;
        Ok(())
    }

    pub(crate) fn create_reader(&self, subscriber: &Subscriber, qos: QosSet) -> Result<MultiTopicReader<T>> {
        let qos = subscriber.inner.qos_of_member(qos);
        let readers = self.inner.constituents.iter().map(|it| (it.read)(subscriber, qos.clone()));
        let readers = readers.collect::<Result<Vec<_>>>()?;
        let (plan, condition) = (Arc::clone(&self.inner.plan), Arc::clone(&self.inner.condition));
        Ok(MultiTopicReader::new(readers, plan, condition, &qos))
    }
}

impl<T: DdsType> Derived for Inner<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn type_name(&self) -> &str {
        T::TYPE_NAME
    }
}

impl<T> Clone for MultiTopic<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<T> Condition<T> {
    fn look<R>(&self, look: impl FnOnce(&Bound<T>) -> R) -> R {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn filter(&self) -> Option<Arc<Filter<T>>> {
        self.look(|bound| bound.filter.clone())
    }
}

fn bind<T: DdsType>(
    parsed: &TopicExpression,
    name: &str,
    expression: &str,
    parameters: Vec<String>,
) -> Result<Bound<T>> {
    let filter = parsed
        .condition(&parameters)
        .map_err(|error| refused(&format!("the multi-topic '{name}'"), expression, error))?;
    Ok(Bound { parameters, filter: filter.map(Arc::new) })
}

/// The topics as FROM names them.
fn in_order(
    parsed: &TopicExpression,
    given: &[Constituent],
    participant: &Arc<ParticipantInner>,
) -> std::result::Result<Vec<Constituent>, String> {
    let mut ordered: Vec<Constituent> = Vec::new();
    for name in &parsed.topics {
        if ordered.iter().any(|known| known.name == *name) {
            return Err(format!("FROM names topic '{name}' twice"));
        }
        let found = given.iter().find(|it| it.name == *name);
        let found = found.ok_or_else(|| format!("FROM names topic '{name}', which was not given"))?;
        if !Arc::ptr_eq(&found.participant, participant) {
            return Err(format!("topic '{name}' belongs to another participant"));
        }
        ordered.push(found.clone());
    }
    match given.iter().find(|it| !parsed.topics.contains(&it.name)) {
        Some(extra) => Err(format!("topic '{}' is given, but FROM does not name it", extra.name)),
        None => Ok(ordered),
    }
}

/// Where each member of the result comes from.
fn fills<T: DdsType>(
    parsed: &TopicExpression,
    constituents: &[Constituent],
) -> std::result::Result<Vec<Fill>, String> {
    let mut fills = Vec::new();
    let all = || match T::fields() {
        Fields::Structure(_, members) => members.iter().map(|member| member.name.to_owned()).collect(),
        _ => Vec::new(),
    };
    let columns = parsed.columns.clone().unwrap_or_else(|| {
        all().into_iter().map(|name: String| Column { from: name.clone(), to: name }).collect()
    });
    for Column { from, to } in columns {
        let (path, kind) = FieldPath::find::<T>(&to)?;
        let mut found = (0..).zip(constituents).filter_map(|(topic, it)| Some((topic, it.find(&from)?)));
        let Some((topic, (source, source_kind))) = found.next() else {
            let names: Vec<_> = constituents.iter().map(|it| it.name.as_str()).collect();
            return Err(format!(
                "no topic of {} has a member '{from}' that could be '{to}'",
                names.join(", ")
            ));
        };
        if source_kind != kind {
            let (source, kind) = (source_kind.name(), kind.name());
            return Err(format!("'{from}' is {source}, but '{to}' of {} is {kind}", T::TYPE_NAME));
        }
        fills.push(Fill { topic, from: source, to: path });
    }
    Ok(fills)
}
